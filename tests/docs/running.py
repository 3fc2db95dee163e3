"""What the tests of pages share: their blocks, and how those of Python are run."""

from __future__ import annotations

from tests.docs.stand_ins import STAND_INS
from tests.helpers.code_blocks import ROOT, Block, all_blocks

BLOCKS = all_blocks()
FIRST_PAGES = ("docs/index.md", "docs/quick_start.md")


def is_of_a_section(page: str) -> bool:
    """Pages in folders and the first ones run in a process of their own, so that none needs too much memory."""
    return page.count("/") > 1 or page in FIRST_PAGES


def pages_with(language: str) -> list[str]:
    return sorted({block.page for block in BLOCKS if block.language == language})


def blocks_on(page: str, language: str) -> list[Block]:
    return [block for block in BLOCKS if (block.page, block.language) == (page, language)]


def stand_ins_for(block: Block) -> dict[str, object]:
    made = [make() for words, make in STAND_INS.get(block.page, {}).items() if words in block.text]
    return {name: value for names in made for name, value in names.items()}


def run_python(page: str) -> None:
    """In one namespace, as a reader goes down the page; a traceback shows the line of the page."""
    names: dict[str, object] = {}
    for block in blocks_on(page, "python"):
        names.update(stand_ins_for(block))
        exec(compile("\n" * (block.line - 1) + block.text, str(ROOT / page), "exec"), names)
