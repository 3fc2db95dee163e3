"""A bar in a notebook: one display that is drawn again, without widgets.

IPython is there wherever a notebook runs; ``display_id`` lets an output be replaced.
"""

from __future__ import annotations

import time
from html import escape
from typing import Any

BETWEEN = 0.2
"""Seconds between two drawings: each is a message to the browser."""


def bar_html(text: str, completed: int, total: int) -> str:
    """The element that browsers have for it, and a line."""
    share = f'value="{completed}" max="{max(total, 1)}"'
    return f'<div><progress {share} style="width:12em;vertical-align:middle"></progress> {escape(text)}</div>'


class NotebookBar:
    """Drawn when it is first told something, and at most five times a second from then on."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = float("-inf")

    def show(self, text: str, completed: int, total: int, *, is_last: bool = False) -> None:
        now = time.monotonic()
        if not is_last and now - self._last < BETWEEN:
            return
        self._last = now
        from IPython.display import HTML, display  # noqa: PLC0415 - only in a notebook, where it is installed

        content = HTML(bar_html(text, completed, total))
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)
