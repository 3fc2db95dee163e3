"""The zoo: its truths against closed forms, the families it must have, and what its page makes of a table."""

from __future__ import annotations

import numpy as np
import pytest

from coreset_mcmc.verdict import BAD, GOOD
from coreset_mcmc_benchmarks.verdicts.measure import errors_of
from coreset_mcmc_benchmarks.verdicts.problems import Moments, Problem
from coreset_mcmc_benchmarks.verdicts.table import zoo_table
from coreset_mcmc_benchmarks.verdicts.zoo_page import is_optimistic, summary_lines, write_zoo
from coreset_mcmc_benchmarks.zoo.by_importance import importance_moments
from coreset_mcmc_benchmarks.zoo.catalogue import ZOO
from coreset_mcmc_benchmarks.zoo.grids import grid_moments
from coreset_mcmc_benchmarks.zoo.groups import effects_moments, horseshoe_moments
from coreset_mcmc_benchmarks.zoo.regressions import LINEAR, linear_moments, whitened_moments
from coreset_mcmc_benchmarks.zoo.supports import SHARE, UNIFORM

FAMILIES = {
    "several modes", "steps", "bounded", "edges", "heavy tails", "leverage", "separation", "collinear", "scales",
    "rare events", "tiny N", "duplicates", "groups", "funnels", "horseshoe", "censoring", "wrong starts",
    "Gaussian term",
}  # fmt: skip


def test_the_catalogue_has_its_families():
    assert len(ZOO) >= 60
    assert {entry.family for entry in ZOO.values()} >= FAMILIES


def test_a_grid_gives_the_moments_of_a_beta(rng):
    y = (rng.random(40) < 0.3).astype(float)
    ones, zeros = 1 + y.sum(), 1 + (1 - y).sum()
    made = grid_moments(SHARE, {"y": y}, [(1e-9, 1 - 1e-9)])
    total = ones + zeros
    assert made.mean == pytest.approx(ones / total, rel=1e-6)
    assert made.covariance == pytest.approx(ones * zeros / total**2 / (total + 1), rel=1e-5)


def test_a_grid_sees_a_jump(rng):
    """Uniform(0, end) with a wide prior is a Pareto tail beyond the largest row."""
    y = rng.uniform(0.0, 1.0, 30)
    made = grid_moments(UNIFORM, {"y": y}, [(1e-3, 40.0)])
    assert made.mean == pytest.approx(29 / 28 * y.max(), rel=1e-3)


def test_regressions_agree_with_the_closed_form(rng):
    x = np.column_stack([np.ones(50), rng.normal(size=50)])
    y = x @ [1.0, 2.0] + rng.normal(size=50)
    exact = linear_moments(x, y)
    grid = whitened_moments(LINEAR, {"x": x, "y": y})
    np.testing.assert_allclose(grid.mean, exact.mean, rtol=1e-6)
    np.testing.assert_allclose(grid.covariance, exact.covariance, rtol=1e-5)
    drawn = importance_moments(LINEAR, {"x": x, "y": y}, np.zeros(2), lambda point: point)
    deviation = np.sqrt(np.diag(exact.covariance))
    assert np.all(np.abs(drawn.mean - exact.mean) < 5 * deviation / np.sqrt(drawn.ess))


def test_groups_without_information_have_the_moments_of_the_prior():
    """Noise of a million: effects keep the variance of the mean and the average of exp(2 log scale)."""
    made = effects_moments(np.zeros(8), np.arange(8), np.full(8, 1e6))
    np.testing.assert_allclose(made.mean, 0.0, atol=1e-3)
    assert made.covariance[8, 8] == pytest.approx(1.0, rel=1e-3)
    assert made.covariance[9, 9] == pytest.approx(25.0, rel=2e-3)  # the grid ends at four deviations
    assert made.covariance[0, 0] == pytest.approx(25 + np.exp(2), rel=0.01)


def test_a_horseshoe_leaves_large_coefficients_alone_and_shrinks_noise():
    x = np.eye(8)[np.arange(800) % 8] * np.sqrt(8)
    centre = np.array([5.0, -3.0, 0, 0, 0, 0, 0, 0])
    made = horseshoe_moments(x, x @ centre, noise=1.0)
    np.testing.assert_allclose(made.mean[:2], centre[:2], rtol=0.01)
    assert made.covariance[0, 0] == pytest.approx(1 / 800, rel=0.05)
    assert made.covariance[5, 5] < 0.5 / 800


def test_errors_of_exact_draws_are_noise_and_those_of_wrong_ones_are_not(rng):
    truth = Moments(np.zeros(2), np.eye(2), np.inf)
    problem = Problem(LINEAR, None, truth, (1,))
    draws = rng.normal(size=(4, 1000, 2))
    right, shifted = errors_of(draws, problem), errors_of(draws + 1.0, problem)
    stuck = errors_of(np.zeros((4, 1000, 2)), problem)
    assert right["true_kl"] < 0.01
    assert shifted["true_kl"] == pytest.approx(1.0, abs=0.1)
    assert shifted["mean_error"] == pytest.approx(1.0, abs=0.1)
    assert not stuck["true_kl"] < 1.0


def rows_of(*runs):
    """Problem, true KL, estimate and verdict."""
    return [
        {"problem": name, "seed": 0, "family": "some", "construction": "default", "coreset_size": 10,
         "true_kl": true, "kl_estimate": estimate, "verdict": verdict, "cpu_seconds": 1.0, "reason": "because"}
        for name, true, estimate, verdict in runs
    ]  # fmt: skip


def test_the_page_counts_what_matters(tmp_path):
    table = zoo_table(tmp_path)
    table.append(*rows_of(("a", 0.01, 0.01, GOOD), ("b", 5.0, 1e-9, GOOD), ("c", 5.0, 0.3, BAD), ("d", 0.0, 0.2, BAD)))
    table.append({"problem": "e", "seed": 0, "family": "some", "verdict": "refused", "failure": "no | such thing"})
    rows = table.rows()
    words = "\n".join(summary_lines(rows))
    assert "Wrong (true KL above 0.1) and called good: 1 of 5 runs (b)" in words
    assert "Right (true KL below 0.1) and called good: 1 of 2, 50 %" in words
    assert "ten times too small: 2 (b, c); 1 of them called good" in words
    assert "1 refused in words, 0 crashed" in words
    assert [row["problem"] for row in rows if is_optimistic(row)] == ["b", "c"]
    assert "no / such thing" in write_zoo(tmp_path, None).read_text()
