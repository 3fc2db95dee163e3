"""Short tables in HTML, for notebooks: everything is escaped, colours are inline, and nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

COLOURS = {"good": "#1b7f3b", "use with care": "#9a6700", "do not use": "#b3261e"}
"""By the level of a verdict; readable on white and on dark grey."""
_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"


def coloured(level: str) -> str:
    """A level in its colour."""
    return f'<strong style="color:{COLOURS.get(level, "inherit")}">{escape(level)}</strong>'


def table(rows: Iterable[Sequence[str]], headings: Sequence[str] = ()) -> str:
    """Cells that are HTML already."""
    head = "".join(f'<th style="{_CELL}">{heading}</th>' for heading in headings)
    lines = [f"<tr>{head}</tr>"] if headings else []
    for row in rows:
        lines.append("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>")
    return '<table style="border-collapse:collapse">' + "".join(lines) + "</table>"


def display(title: str, *parts: str) -> str:
    """A heading and what belongs to it."""
    return f'<div style="max-width:60em"><p><strong>{escape(title)}</strong></p>{"".join(parts)}</div>'


def small(lines: Iterable[str]) -> str:
    """Notes below."""
    return "<small>" + "<br>".join(escape(line) for line in lines) + "</small>"


def paragraph(text: str) -> str:
    """Words as they are."""
    return f"<p>{escape(text)}</p>"
