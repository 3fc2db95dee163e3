"""The files that take longest are begun first, so that no process works on one alone at the end."""

from __future__ import annotations

import pytest

LONGEST = (
    "tests/docs/test_code_blocks.py",
    "tests/commands/test_fit_command.py",
    "tests/docs/test_tutorial.py",
    "tests/docs/test_code_blocks_of_sections.py",
    "tests/methods/test_method_contract.py",
    "tests/commands/test_large_tables.py",
    "tests/interop/test_numpyro.py",
    "tests/interop/test_pymc.py",
    "tests/test_examples.py",
    "tests/verdict/test_trust.py",
    "tests/methods/test_methods_through_fit.py",
    "tests/commands/test_killed_runs.py",
    "tests/benchmarks/test_speed_command.py",
    "tests/methods/least_squares/test_least_squares.py",
    "tests/benchmarks/test_bench_command.py",
    "tests/kernels/test_kernel_invariance.py",
    "tests/benchmarks/test_paper_command.py",
    "tests/report/test_report_page.py",
    "tests/interop/test_models_on_scans.py",
    "tests/kernels/test_kernel_contract.py",
    "tests/fitting/test_fit.py",
    "tests/commands/test_bad_input.py",
    "tests/commands/test_large_table_mistakes.py",
    "tests/tables/test_regression.py",
    "tests/kernels/test_gibbs.py",
    "tests/interop/test_bambi.py",
    "tests/driver/test_checkpoint.py",
    "tests/results/test_rows_anywhere.py",
)
"""From the longest on; all others follow in their own order."""


def keep_order(config: pytest.Config) -> None:
    """Let processes take files as they come; otherwise pytest-xdist begins with those that have most tests."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Whole files; tests of one stay as they are."""
    places = {path: place for place, path in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
