"""Pages of the paper: every large difference has a reason or is open, and findings follow from their rules."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.methods.subsampling.confidence import EmpiricalBernstein
from coreset_mcmc.methods.subsampling.sequential import Evidence
from coreset_mcmc_benchmarks.paper import measure as measuring
from coreset_mcmc_benchmarks.paper.authors import MEDIAN_KL
from coreset_mcmc_benchmarks.paper.beside_authors import write_beside_authors
from coreset_mcmc_benchmarks.paper.budget import QUICK
from coreset_mcmc_benchmarks.paper.cell import in_words, median_of
from coreset_mcmc_benchmarks.paper.diagnostics import DIAGNOSTICS, METHODS, ForcedBernstein
from coreset_mcmc_benchmarks.paper.finding import Tables
from coreset_mcmc_benchmarks.paper.findings import FINDINGS, write_findings
from coreset_mcmc_benchmarks.paper.jobs import Job
from coreset_mcmc_benchmarks.paper.left import left_section, wanted_jobs
from coreset_mcmc_benchmarks.paper.measure import Setup
from coreset_mcmc_benchmarks.paper.reasons import PUT_BACK, difference
from coreset_mcmc_benchmarks.paper.references import Reference
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.small_sizes import is_misled, small_sizes_section
from coreset_mcmc_benchmarks.paper.table import CURVE_FIELDS, FIELDS, runs_table

COMMITTED = Path(__file__).parents[2] / "docs" / "paper"
NO_CURVES = pd.DataFrame(columns=list(CURVE_FIELDS))


def table(*cells):
    """Runs with seeds 1, 2, ... from tuples of method, problem, size and their KLs."""
    rows = [
        {"method": method, "experiment": experiment, "coreset_size": size, "seed": seed, "kl": kl}
        for method, experiment, size, *values in cells
        for seed, kl in enumerate(values, start=1)
    ]
    return pd.DataFrame(rows, columns=list(FIELDS))


@pytest.fixture
def many_runs(tmp_path):
    """Every cell at two sizes a thousand times too small and, of the next method, too large."""
    rows = []
    for number, (method, contestant) in enumerate(METHODS.items()):
        for experiment in ("linear", "logistic", "poisson", "sparse"):
            for size in (10, 500) if contestant.has_coreset else ("",):
                kl = 1e-4 if number % 2 else 1e9
                rows.append(
                    {"experiment": experiment, "method": method, "coreset_size": size, "seed": 1, "kl": kl}
                    | {"kl_estimate": kl, "label": "as published", "evaluations": 1e6, "rows": 100}
                )
    runs_table(tmp_path).append(*rows)
    return tmp_path


@pytest.mark.parametrize("folder", ["made up", "committed"])
def test_every_marked_row_has_a_reason_or_is_open(folder, many_runs, tmp_path):
    if folder == "committed":
        shutil.copy(COMMITTED / "runs.csv", tmp_path)
    marked = [line for line in write_beside_authors(tmp_path).read_text().splitlines() if "†" in line]
    assert marked
    for line in marked:
        reason = line.rstrip(" |").rpartition("|")[2].strip()
        assert reason.startswith(("explained: ", "in part: ", "our runs are on both sides", "open")), line


@pytest.mark.parametrize(
    ("own", "put_back", "told"),
    [
        ([100.0], [], ""),
        ([80.0, 90.0, 1e9], [], ""),
        ([1.0], [], "open, 1 run; nothing has been put back yet"),
        ([np.inf], [], "open, 1 run; nothing has been put back yet"),
        ([1.0, 1.0, 900.0], [], "our runs are on both sides of it: 1 to 900"),
        ([1.0], [1.2], "open, 1 run; direction 1 000 times too long, put back: 1.2"),
        ([1.0], [15.0], "in part: direction 1 000 times too long, put back: 15"),
        ([1.0], [70.0], "explained: direction 1 000 times too long, put back: 70"),
        ([1.0], [np.inf], "open, 1 run; direction 1 000 times too long, put back: failed"),
    ],
)
def test_reasons_are_what_was_measured(own, put_back, told):
    """The authors' median is 80."""
    runs = table(("quasi-newton", "poisson", 500, *own), ("quasi-newton-long", "poisson", 500, *put_back))
    found = difference(runs, "quasi-newton", "poisson", 500, 80.0)
    assert found.is_far == bool(told)
    assert found.reason == told


def test_nothing_is_said_of_a_cell_that_was_not_run():
    assert difference(table(), "quasi-newton", "poisson", 500, 80.0) == (False, "", False)
    assert in_words(np.array([])) == "not run"
    assert np.isnan(median_of(table(), "uniform", "linear", 50))


def test_experiments_put_properties_of_contestants_back():
    names = {one.method for several in PUT_BACK.values() for one in several}
    assert names == set(DIAGNOSTICS)
    assert set(PUT_BACK) <= {method for method, _, _ in MEDIAN_KL}
    assert not set(DIAGNOSTICS) & set(CONTESTANTS)


def test_findings_without_runs_are_not_judged():
    for finding in FINDINGS:
        assert finding.judge(Tables(table(), NO_CURVES)).agrees is None, finding.claim


@pytest.mark.parametrize(("uniform", "agrees"), [(50.0, True), (5.0, False)])
def test_a_finding_follows_from_its_rule(uniform, agrees):
    finding = next(one for one in FINDINGS if one.claim.startswith("Unif is an order"))
    runs = table(("uniform", "linear", 500, uniform), ("coreset-mcmc", "linear", 500, 1.0))
    assert finding.judge(Tables(runs, NO_CURVES)).agrees is agrees


def test_every_finding_that_differs_has_a_reason_or_is_open(many_runs):
    lines = [line for line in write_findings(many_runs).read_text().splitlines() if "**differs**" in line]
    assert lines
    for line in lines:
        assert line.rstrip(" |").rpartition("|")[2].strip(), line


def test_a_run_misleads_if_its_estimate_hides_a_bad_truth():
    runs = pd.DataFrame({"kl": [5.0, 5.0, 0.5, np.inf], "kl_estimate": [0.5, 2.0, 0.1, 0.1]})
    assert is_misled(runs).tolist() == [True, False, False, True]


def test_small_sizes_tell_what_the_default_said():
    runs = table(("least-squares", "sparse", 10, 1e9, 1e6), ("uniform", "sparse", 20, 100.0))
    runs["verdict"] = ["do not use", "do not use", None]
    text = "\n".join(small_sizes_section(runs))
    assert 'said "do not use" in 2 of 2 runs; the true KL was from 1e+06 to 1e+09' in text
    assert "| sparse | 20 | Unif | 1 | 100 | none |" in text


def test_what_is_left_shrinks_with_what_was_run():
    jobs = wanted_jobs()
    assert len(jobs) == len(set(jobs))
    assert sum(job.method == "least-squares" for job in jobs) == 4 * (3 * 10 + 3 * 3)
    rows = [line for line in left_section(table(("uniform", "linear", 10, 1.0, 1.0))) if line.startswith("| Unif")]
    assert rows[0].startswith("| Unif | 72 | 70 |")


@pytest.mark.parametrize(("num_rows", "is_forced"), [(60, True), (40, False)])
def test_forced_decisions_come_before_all_rows(num_rows, is_forced):
    """With growth 2 and 100 rows the look after 60 would be at all of them. Nothing is clear from this evidence."""
    evidence = Evidence(jnp.asarray(5), jnp.asarray(num_rows), jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(1.0))
    for test, expected in ((ForcedBernstein(0.05, 2.0), is_forced), (EmpiricalBernstein(0.05, 2.0), False)):
        assert bool(test.is_enough(evidence, jnp.asarray(0.0), jnp.asarray(1.0), 100)) is expected


@pytest.mark.full
@pytest.mark.parametrize("name", [*DIAGNOSTICS, "quasi-newton-best"])
def test_experiments_run(name, tmp_path, monkeypatch):
    """On few rows, beside a reference out of the air; the logistic search for the mode is the short one."""
    setup = Setup(dataclasses.replace(QUICK, kept=100, max_rows=300), None, tmp_path)
    nothing = np.zeros((0, 0), int)
    target = Reference("r", np.ones(11), np.eye(11), nothing, nothing, {})
    monkeypatch.setattr(measuring, "reference_of", lambda *arguments: target)
    made, _ = measuring.measure(Job("logistic", name, 20 if METHODS[name].has_coreset else None, 1), setup)
    assert "failure" not in made
    assert np.isfinite(made["kl"])
