"""A summary shows as many digits as the standard deviation gives a meaning to, and keeps its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.core.digits import beside
from coreset_mcmc.results.summary_table import SummaryTable


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (2.00131, 0.00243, "2.0013"),
        (0.00243, 0.00243, "0.0024"),
        (-0.000341, 0.0000312, "-0.000341"),
        (1.203123e-06, 1.13e-09, "1.2031e-06"),
        (1.13e-09, 1.13e-09, "1.1e-09"),
        (0.0, 1e-9, "0e+00"),
        (-1e-12, 0.5, "0.00"),
        (12_345.6, 321.0, "12,346"),
        (2.5e12, 3e9, "2.5000e+12"),
        (1e12, 12.0, "1.000000000000e+12"),
        (5.0, 0.0, "5"),
        (5.123456, float("nan"), "5.123"),
        (float("nan"), 1.0, "nan"),
        (float("inf"), 1.0, "inf"),
        (3.0, float("inf"), "3"),
    ],
)
def test_digits(value, spread, text):
    assert beside(value, spread) == text


def made() -> SummaryTable:
    values = {"mean": [2.00131, 1.2e-6], "sd": [0.00243, 3.1e-9], "eti89_lb": [1.9975, 1.19e-6]}
    values |= {"ess_bulk": [812.4, 3_000.0], "r_hat": [1.00049, 1.01], "mcse_mean": [0.000123, 1e-10]}
    return SummaryTable(pd.DataFrame(values, index=["a", "b"]))


def test_text_follows_the_spread_of_each_line():
    lines = repr(made()).splitlines()
    assert lines[1].split() == ["a", "2.0013", "0.0024", "1.9975", "812", "1.000", "0.00012"]
    assert lines[2].split() == ["b", "1.2000e-06", "3.1e-09", "1.1900e-06", "3000", "1.010", "1.0e-10"]
    assert made().to_string() == repr(made())
    assert "2.0013" in made()._repr_html_()


def test_numbers_are_kept():
    table = made()
    assert table.loc["a", "mean"] == 2.00131
    assert all(dtype == np.float64 for dtype in table.dtypes)
    assert type(table[["mean"]]) is pd.DataFrame
    assert table["mean"].max() == 2.00131


def test_a_long_one_is_cut_as_pandas_does():
    table = SummaryTable(pd.DataFrame({"mean": np.arange(500.0), "sd": 1.0}))
    assert len(repr(table).splitlines()) < 100


def test_columns_that_do_not_fit_are_named():
    """A terminal of eighty columns shows means, intervals, ESS and R-hat, and no dots in their place."""
    values = {"mean": [0.123456], "sd": [0.0123], "eti89_lb": [0.1], "eti89_ub": [0.14], "ess_bulk": [5443.0]}
    values |= {"ess_tail": [3282.0], "r_hat": [1.0], "mcse_mean": [0.00043], "mcse_sd": [0.0003]}
    table = SummaryTable(pd.DataFrame(values, index=["device[phone]"]))
    with pd.option_context("display.width", 80):
        shown = repr(table)
    assert "..." not in shown
    assert "r_hat" in shown
    assert shown.endswith("[not shown: mcse_mean, mcse_sd]")
    with pd.option_context("display.width", 120):
        assert "mcse_sd" in repr(table).splitlines()[0]
