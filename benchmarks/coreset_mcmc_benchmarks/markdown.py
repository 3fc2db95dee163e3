"""Tables of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, one line for each row."""
    return [line_of(headings), "|---" * len(headings) + "|", *map(line_of, rows)]


def line_of(cells: Sequence[str]) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
