"""Every block of Python on the first pages and on those in folders runs: how-to, reference, benchmarks."""

from __future__ import annotations

import pytest

from tests.docs.running import is_of_a_section, pages_with, run_python

PAGES = [page for page in pages_with("python") if is_of_a_section(page)]


def test_both_sections_and_the_first_pages_are_there():
    assert {page.split("/")[1] for page in PAGES} >= {"how_to", "reference", "index.md", "quick_start.md"}


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_python(page, in_a_folder, single_precision):
    run_python(page)
