"""The spike-and-slab regression against SciPy, at the edges of its support, and the paper's data and start."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.models import least_squares_start, sparse_regression, sparse_regression_data
from coreset_mcmc.models.sparse import TRUE_COEFFICIENTS
from coreset_mcmc.posterior.problem import check_model, starting_positions

NUM_ROWS, NUM_FEATURES, NUM_POSITIONS = 7, 4, 12

HYPER = {
    "inclusion_probability": 0.3,
    "slab_ratio": 4.0,
    "spike_scale": 0.2,
    "variance_shape": 3.0,
    "variance_scale": 0.7,
}


def batch_of(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.normal(size=(NUM_ROWS, NUM_FEATURES)), "y": rng.normal(size=NUM_ROWS)}


def random_positions(rng: np.random.Generator) -> Any:
    return {
        "beta": rng.normal(size=(NUM_POSITIONS, NUM_FEATURES)),
        "gamma": rng.integers(0, 2, (NUM_POSITIONS, NUM_FEATURES), dtype=np.int32),
        "variance": rng.lognormal(size=NUM_POSITIONS),
    }


def scipy_log_prior(
    position: Any,
    *,
    inclusion_probability: float = 0.1,
    slab_ratio: float = 10.0,
    spike_scale: float = 0.1,
    variance_shape: float = 0.1,
    variance_scale: float = 1.0,
) -> np.ndarray:
    beta, gamma = position["beta"], position["gamma"]
    noise = stats.invgamma(variance_shape / 2, scale=variance_shape * variance_scale / 2).logpdf(position["variance"])
    scales = np.where(gamma == 1, slab_ratio * spike_scale, spike_scale)
    indicators = stats.bernoulli(inclusion_probability).logpmf(gamma)
    return noise + (indicators + stats.norm.logpdf(beta, 0.0, scales)).sum(axis=-1)


@pytest.mark.parametrize("hyper", [{}, HYPER], ids=["paper", "other"])
def test_log_prior_agrees_with_scipy_up_to_one_constant(rng: np.random.Generator, hyper: dict[str, float]) -> None:
    positions = random_positions(rng)
    ours = jax.vmap(sparse_regression(NUM_FEATURES, **hyper).log_prior)(positions)
    gap = np.asarray(ours) - scipy_log_prior(positions, **hyper)
    assert ours.shape == (NUM_POSITIONS,)
    np.testing.assert_allclose(gap, gap[0], rtol=1e-11)


def test_log_likelihood_agrees_with_scipy_up_to_one_constant(rng: np.random.Generator) -> None:
    positions, batch = random_positions(rng), batch_of(rng)
    ours = jax.vmap(sparse_regression(NUM_FEATURES).log_likelihood, in_axes=(0, None))(positions, batch)
    predicted = positions["beta"] @ batch["x"].T
    expected = stats.norm.logpdf(batch["y"], predicted, np.sqrt(positions["variance"])[:, None])
    np.testing.assert_allclose(ours, expected + 0.5 * np.log(2.0 * np.pi), rtol=1e-11)


@pytest.mark.parametrize(
    ("part", "value"), [("variance", 0.0), ("variance", -1.0), ("gamma", 2), ("gamma", -1), ("variance", np.nan)]
)
def test_outside_the_support_nothing_is_possible(rng: np.random.Generator, part: str, value: float) -> None:
    """And nothing is NaN, so that a rejection needs no special case."""
    model = sparse_regression(NUM_FEATURES)
    position = jax.tree.map(lambda leaf: leaf[0].copy(), random_positions(rng))
    assert np.isfinite(model.log_prior(position))
    position[part] = np.array(value) if part == "variance" else np.array([0, 1, value, 1], np.int32)
    assert model.log_prior(position) == -np.inf
    assert not np.isnan(model.log_likelihood(position, batch_of(rng))).any()


def test_the_bound_on_the_change_holds_and_is_not_idle(rng: np.random.Generator) -> None:
    """For each pair of positions some choice of a row within the largest length comes within half of it."""
    model, batch = sparse_regression(NUM_FEATURES), batch_of(rng)
    bound = model.change_bound
    assert bound is not None
    positions = random_positions(rng)
    here = jax.tree.map(lambda leaf: leaf[:6], positions)
    there = jax.tree.map(lambda leaf: leaf[6:], positions)
    longest = jnp.max(bound.row_statistic(batch))
    directions = rng.normal(size=(20_000, NUM_FEATURES + 1))
    directions *= float(longest) / np.linalg.norm(directions, axis=1, keepdims=True)
    rows = {"x": np.r_[batch["x"], directions[:, 1:]], "y": np.r_[batch["y"], directions[:, 0]]}
    values = jax.vmap(model.log_likelihood, in_axes=(0, None))
    largest = np.abs(np.asarray(values(there, rows) - values(here, rows))).max(axis=1)
    limits = np.asarray(jax.vmap(bound.bound, in_axes=(None, 0, 0))(longest, here, there))
    assert np.all(largest <= limits)
    assert np.all(largest >= 0.5 * limits)


def test_starts_in_the_support_with_its_types_and_accepts_its_data(rng: np.random.Generator) -> None:
    model, data = sparse_regression(NUM_FEATURES), batch_of(rng)
    positions = starting_positions(model, jax.random.key(0), 3)
    check_model(model, to_rows(data), positions)
    assert positions["gamma"].dtype == jnp.int32
    assert positions["beta"].dtype == positions["variance"].dtype == jnp.float64
    assert not model.differentiable
    assert sparse_regression(NUM_FEATURES) is model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_features": 0}, "num_features"),
        ({"inclusion_probability": 1.0}, "between 0 and 1"),
        ({"slab_ratio": 1.0}, "above 1"),
        ({"spike_scale": 0.0}, "spike_scale"),
        ({"variance_shape": -1.0}, "variance_shape"),
        ({"variance_scale": 0.0}, "variance_scale"),
    ],
)
def test_bad_numbers_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sparse_regression(**{"num_features": 2, **options})


def test_bad_data_are_refused(rng: np.random.Generator) -> None:
    check = sparse_regression(NUM_FEATURES + 1).check_data
    assert check is not None
    with pytest.raises(InputError, match="features x"):
        check(batch_of(rng))


@pytest.mark.statistical
def test_data_and_start_of_the_paper(rng: np.random.Generator) -> None:
    """Every coefficient within 5 of its deviations, 25 / sqrt(N); so is the variance: false alarms below 1e-5."""
    data = sparse_regression_data(rng, num_rows=20_000)
    start = least_squares_start(data)
    deviation = 25.0 / np.sqrt(20_000)
    assert np.all(np.abs(start["beta"] - np.array(TRUE_COEFFICIENTS)) < 5.0 * deviation)
    assert abs(start["variance"] / 625.0 - 1.0) < 5.0 * np.sqrt(2.0 / 20_000)
    assert start["gamma"].tolist() == [1] * 10
    assert start["gamma"].dtype == np.int32
    shapes = jax.tree.map(np.shape, sparse_regression(10).initial_position)
    assert jax.tree.map(np.shape, start) == shapes


def test_a_start_from_data_that_fit_exactly(rng: np.random.Generator) -> None:
    few = {"x": rng.normal(size=(3, 5)), "y": rng.normal(size=3)}
    assert least_squares_start(few)["variance"] == 1.0
