"""Fenced blocks of Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """What stands between two fences."""

    page: str
    """Path from the root of the repository."""
    line: int
    """Number of its first line on the page."""
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """In their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(2)) + 1, found.group(1), found.group(2))
        for found in FENCE.finditer(text)
    ]


def all_blocks() -> list[Block]:
    """Of README and documentation."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [block for page in pages for block in blocks_of(page.relative_to(ROOT).as_posix())]
