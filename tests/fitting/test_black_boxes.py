"""A log-likelihood from SciPy: a right posterior of all rows in a bounded number of calls, and what has no slopes."""

from __future__ import annotations

import csv
import warnings

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import bulk_ess
from coreset_mcmc_benchmarks.black_boxes.problems import PROBLEMS, maxima
from coreset_mcmc_benchmarks.black_boxes.reference import reference
from coreset_mcmc_benchmarks.draws import draws_of, flattened
from tests.helpers.code_blocks import ROOT

SIZE = 2_000
MOST_CALLS, MOST_ROWS = 40_000, 25_000_000
"""Of the user's function, each for one position; before there were slopes by differences it took 200 000."""


def model_of(problem, log_likelihood=None, **options):
    start = {name: np.asarray(value, float) for name, value in problem.start.items()}
    return cm.Model.from_callable(problem.log_prior, log_likelihood or problem.log_likelihood, start, **options)


@pytest.mark.full
def test_generalised_extreme_values_of_scipy():
    """Means and standard deviations of importance sampling on all rows, within four errors and a twentieth of an sd."""
    problem, counts = maxima(SIZE), []

    def counted(position, rows):
        counts.append(len(rows["y"]))
        return problem.log_likelihood(position, rows)

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fit = cm.fit(
            model_of(problem, counted), problem.data, coreset_size=200, draws=500, random_seed=0, progressbar=False
        )
    assert len(counts) < MOST_CALLS
    assert sum(counts) < MOST_ROWS
    assert fit.kl_estimate < 0.01
    flat, known = flattened(draws_of(fit)), reference(problem, 1_500)
    effective = bulk_ess(flat)
    assert effective.min() > 400
    errors = np.hypot(flat.std(axis=(0, 1)) / np.sqrt(effective), known.errors)
    shift = np.abs(flat.mean(axis=(0, 1)) - known.means)
    assert np.all(shift < 4 * errors + 0.05 * known.deviations)
    spread = np.sqrt(0.5 / effective + 0.5 / known.effective)
    assert np.all(np.abs(flat.std(axis=(0, 1)) / known.deviations - 1) < 4 * spread + 0.05)


def test_a_smooth_function_has_slopes_and_one_that_jumps_is_told_apart():
    smooth, jumping = (PROBLEMS[name][1](200) for name in ("gev", "jumps"))
    assert model_of(smooth).bind(smooth.data).differentiable
    assert not model_of(smooth, smooth=False).bind(smooth.data).differentiable
    with pytest.warns(UserWarning, match=r"log_likelihood\(position, rows\) is not smooth.*smooth=True"):
        bound = model_of(jumping).bind(jumping.data)
    assert not bound.differentiable
    assert model_of(jumping, smooth=True).bind(jumping.data).differentiable


def test_the_same_data_give_the_same_programs():
    """A model bound again is equal, so that nothing compiles anew."""
    problem = maxima(200)
    model = model_of(problem)
    assert model.bind(problem.data).log_likelihood == model.bind(problem.data).log_likelihood


def test_whole_numbers_have_no_slopes():
    problem = maxima(200)
    model = cm.Model.from_callable(
        problem.log_prior, problem.log_likelihood, {**problem.start, "location": np.array(20)}
    )
    assert not model.bind(problem.data).differentiable
    assert jax.tree.leaves(model.initial_position)


def test_in_the_committed_table_what_is_called_good_is_right_and_in_time():
    with (ROOT / "docs" / "benchmarks" / "black_boxes.csv").open(newline="") as file:
        rows = {row["problem"]: row for row in csv.DictReader(file)}
    assert float(rows["gev"]["seconds"]) < 60
    for row in rows.values():
        assert row["verdict"] != "good" or float(row["largest_shift"]) < 0.3, row["problem"]
