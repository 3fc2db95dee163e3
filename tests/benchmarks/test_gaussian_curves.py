"""Figure 1: exact sums, known floors, and the shape of the curves."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.data import ArrayData
from coreset_mcmc.methods.sums import full_data_sums
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc_benchmarks.paper import gaussian
from coreset_mcmc_benchmarks.paper.gaussian import MeanRow, Variant, exact_kl, floor, heuristic, run_curve


def test_sum_through_the_mean_row_equals_the_sum_over_all_rows(rng):
    rows = jnp.asarray(rng.normal(size=(500, 3)))
    positions = {"theta": jnp.asarray(rng.normal(size=(4, 3)))}
    model = gaussian_location(3)
    every = full_data_sums(model, positions, ArrayData(rows))
    short = full_data_sums(model, positions, MeanRow(ArrayData(rows), jnp.mean(rows, axis=0, keepdims=True)))
    np.testing.assert_allclose(short.total, every.total, rtol=1e-10)


def test_exact_kl_is_that_of_the_model(rng):
    rows = jnp.asarray(rng.normal(size=(200, 3)))
    weights = jnp.asarray(rng.uniform(0, 20, size=10))
    found = exact_kl(rows[:10], weights, jnp.sum(rows, axis=0), 200)
    assert float(found) == pytest.approx(float(coreset_kl(rows[:10], weights, rows)), rel=1e-12)


@pytest.mark.parametrize(
    ("coreset_size", "affine", "stated"),
    [(2, 3.20e4, 3.20e4), (10, 4836, 4836), (20, 43.5, 1267), (25, 0, 134), (30, 0, 74.7), (40, 0, 15.3), (60, 0, 0)],
)
def test_floors_are_those_of_the_authors_rows(coreset_size, affine, stated):
    """Values found independently for the rows of the published script, to the digits given."""
    assert floor(coreset_size, "affine") == pytest.approx(affine, rel=5e-3)
    assert floor(coreset_size, "simplex") == pytest.approx(stated, rel=5e-3)


def test_start_of_the_heuristic_is_the_kl_of_uniform_weights():
    """At t = 1 and without noise it is d N / (2 M); without the factor d it would be 20 times too small."""
    variant = Variant("a", "affine", subsample_size=gaussian.SIZE, rate=0.05)
    rows = gaussian.data()
    start = exact_kl(jnp.asarray(rows[:30]), jnp.full(30, 10_000 / 30), jnp.asarray(rows.sum(axis=0)), 10_000)
    assert heuristic(variant, np.array([1]))[0] == pytest.approx(20 * 10_000 / 60)
    assert float(start) == pytest.approx(2_749, rel=1e-3)
    assert 0.5 < float(start) / heuristic(variant, np.array([1]))[0] < 1.5


@pytest.fixture(scope="module")
def curves():
    """Full-data gradients at M = 30 with either set, and at M = 100 with the stated one."""
    return {
        (name, size): run_curve(
            Variant("a", name, coreset_size=size, subsample_size=gaussian.SIZE, rate=0.1), 3_000, seed=1
        )
        for name, size in (("affine", 30), ("simplex", 30), ("simplex", 100))
    }


@pytest.mark.full
def test_decay_is_geometric_without_the_sign_and_stops_at_the_floor_with_it(curves):
    affine, simplex = curves["affine", 30], curves["simplex", 30]
    assert affine.kl[-1] < 1e-3 * affine.kl[0]
    lowest = floor(30, "simplex")
    assert lowest * (1 - 1e-9) <= simplex.kl[-1] < 2 * lowest
    assert curves["simplex", 100].kl[-1] < 1e-6


@pytest.mark.full
def test_curve_never_goes_below_its_floor(curves):
    assert (curves["simplex", 30].kl >= floor(30, "simplex") * (1 - 1e-9)).all()
