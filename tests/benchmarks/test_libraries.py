"""The comparison with other libraries' NUTS: what counts as agreement, which models are chosen, the committed table."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from coreset_mcmc_benchmarks.interop.libraries.agreement import compared, mixing
from tests.helpers.code_blocks import ROOT

TABLE = ROOT / "docs" / "benchmarks" / "libraries.csv"
PARAMETER = {"mean": 1.0, "sd": 2.0, "mcse_mean": 0.05, "mcse_sd": 0.04, "ess_bulk": 1600.0, "r_hat": 1.0}


def beside(**changes):
    """Our summary of two parameters, one of which has changed, beside theirs."""
    return compared({"a": PARAMETER, "b": {**PARAMETER, **changes}}, {"a": PARAMETER, "b": PARAMETER})


def test_agreement_is_within_errors_and_a_stated_tolerance():
    assert beside()["agrees"] == "yes"
    allowed = 4 * np.hypot(0.05, 0.05) + 0.1 * 2.0
    assert beside(mean=1.0 + 0.99 * allowed)["agrees"] == "yes"
    assert beside(mean=1.0 + 1.01 * allowed)["agrees"] == "no: b"
    assert beside(sd=3.0)["agrees"] == "no: b"


@pytest.mark.parametrize("rhat", [1.2, np.nan])
def test_chains_of_ours_that_disagree_agree_with_nothing(rhat):
    """Their Monte Carlo errors are so large that anything is within them."""
    ours = {"a": {**PARAMETER, "r_hat": rhat, "mean": 70.0, "mcse_mean": 40.0}}
    assert compared(ours, {"a": PARAMETER})["agrees"].startswith("no")


@pytest.mark.parametrize("name", ["mean", "sd", "mcse_mean"])
def test_what_is_no_number_does_not_agree(name):
    assert beside(**{name: np.nan})["agrees"].startswith("no")


def test_chains_of_theirs_that_disagree_are_no_reference():
    theirs = {"a": {**PARAMETER, "r_hat": 1.2}}
    assert compared({"a": {**PARAMETER, "mean": 5.0}}, theirs)["agrees"].startswith("unclear")
    assert compared({"a": PARAMETER}, theirs)["agrees"].startswith("unclear")
    assert mixing(theirs) == (1600.0, 1.2)
    assert compared({"a": PARAMETER}, {"b": PARAMETER})["agrees"].startswith("no")


@pytest.mark.full
def test_thirty_models_of_all_kinds_are_chosen():
    pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
    from coreset_mcmc_benchmarks.interop.libraries.chosen import CHOSEN, NAMES

    assert set(CHOSEN) == set(NAMES)
    assert len(CHOSEN) >= 30
    assert sum(not entry.is_glm for entry in CHOSEN.values()) >= 12
    assert {entry.library for entry in CHOSEN.values()} == {"NumPyro", "PyMC", "Bambi"}
    assert not any(entry.refusal for entry in CHOSEN.values())


def test_in_the_committed_table_no_posterior_differs():
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(int(row["rows"]) == 20_000 for row in rows)
    assert not [row["model"] for row in rows if row["agrees"].startswith("no")]
