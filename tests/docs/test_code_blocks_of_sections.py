"""Every block of Python on the pages in folders runs: how-to, reference, benchmarks."""

from __future__ import annotations

import pytest

from tests.docs.running import pages_with, run_python

PAGES = [page for page in pages_with("python") if page.count("/") > 1]


def test_both_sections_are_there():
    assert {page.split("/")[1] for page in PAGES} >= {"how_to", "reference"}


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_python(page, in_a_folder, single_precision):
    run_python(page)
