"""Every file and folder that the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "benchmarks").glob("*.md")]
PLACES = [ROOT, ROOT / "src" / "coreset_mcmc", ROOT / "benchmarks" / "coreset_mcmc_benchmarks", ROOT / "docs"]
NAMED = re.compile(r"`([\w-]+/[\w/-]*\w+\.py)`")


def named_paths(page: Path) -> set[str]:
    """Words in code spans that look like Python files."""
    return set(NAMED.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_paths_exist(page):
    missing = [name for name in named_paths(page) if not any((place / name).exists() for place in PLACES)]
    assert missing == []
