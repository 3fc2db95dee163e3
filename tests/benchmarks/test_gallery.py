"""The catalogue of models of other libraries: a handful in every run, all of them with ``--slow``, and its table."""

from __future__ import annotations

import csv
import re

import pytest

from tests.helpers.code_blocks import ROOT

pytest.importorskip("pymc", reason="needs PyMC: pip install coreset-mcmc[pymc]")
pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
import pymc

from coreset_mcmc_benchmarks.interop.catalogue.bambi_models import FAMILIES
from coreset_mcmc_benchmarks.interop.catalogue.command import ENTRIES, named
from coreset_mcmc_benchmarks.interop.catalogue.measure import measure

SIZE = 60
EXACT = 1e-9
"""Relative; PyMC computes some constants of the LKJ prior in single precision."""
HANDFUL = (
    "NumPyro Poisson", "NumPyro horseshoe", "NumPyro a latent for each row",
    "PyMC Categorical", "PyMC HurdleNegativeBinomial", "PyMC AR",
    "Bambi family cumulative", "Bambi weighted response, gamma",
)  # fmt: skip
NO_DISTRIBUTIONS = {
    "Continuous", "Discrete", "Distribution", "SymbolicRandomVariable", "WishartBartlett",
}  # fmt: skip
"""Names of PyMC's list that nothing can be observed of: base classes, and a prior that is made of others."""


def tier(entry):
    return pytest.param(entry, id=named(entry), marks=pytest.mark.full if named(entry) in HANDFUL else pytest.mark.slow)


@pytest.mark.parametrize("entry", [tier(entry) for entry in ENTRIES])
def test_a_model_converts_exactly_or_is_refused_for_the_stated_reason(entry):
    found = measure(entry, SIZE)
    assert found["converts"] == ("no" if entry.refusal else "yes")
    if entry.refusal:
        assert re.search(entry.refusal, found["refusal"], re.DOTALL)
    else:
        assert found["density_error"] < EXACT


def test_the_catalogue_is_complete():
    names = {entry.name.split(",")[0] for entry in ENTRIES if entry.library == "PyMC"}
    assert set(pymc.distributions.__all__) - NO_DISTRIBUTIONS <= names
    assert {f"family {name}" for name in FAMILIES} <= {entry.name for entry in ENTRIES if entry.library == "Bambi"}
    assert len({named(entry) for entry in ENTRIES}) == len(ENTRIES) >= 120
    assert sum(not entry.is_glm for entry in ENTRIES) >= 50


def test_the_committed_table_holds_every_model_and_agrees_with_the_catalogue():
    with (ROOT / "docs" / "benchmarks" / "gallery.csv").open(newline="") as file:
        rows = {f"{row['library']} {row['model']}": row for row in csv.DictReader(file)}
    assert set(rows) == {named(entry) for entry in ENTRIES}
    for entry in ENTRIES:
        row = rows[named(entry)]
        assert (row["converts"] == "no") == bool(entry.refusal), named(entry)
        assert int(row["rows"]) >= 3_000
        if row["converts"] == "yes":
            assert float(row["density_error"]) < EXACT, named(entry)
