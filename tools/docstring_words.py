"""Docstrings for the site: roles of reStructuredText, such as :class:`Model`, become plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):`~?([^`]+)`")


def without_roles(text: str) -> str:
    """The last part of a dotted name is what a reader calls it."""
    return ROLE.sub(lambda found: f"`{found.group(1).lstrip('.').rpartition('.')[2]}`", text)


class DocstringWords(griffe.Extension):
    """Applied to every docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = without_roles(obj.docstring.value)
