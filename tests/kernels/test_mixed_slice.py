"""Whole numbers and truth values beside real numbers, against probabilities that are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.kernels.base import init_chains, step_chains
from coreset_mcmc.kernels.mixed_slice import MixedSlice, flat_numbers, real_coordinates
from coreset_mcmc.posterior.target import CoresetTarget

NUM_STEPS, RATE = 3_000, 3.5


def log_prior(position):
    """count ~ Poisson(3.5), is_on ~ Bernoulli(0.3), place | both ~ N(count + 2 is_on, 1)."""
    count, is_on = position["count"], position["is_on"]
    number = jnp.where(count >= 0, count * jnp.log(RATE) - jax.scipy.special.gammaln(count + 1.0), -jnp.inf)
    return number + jnp.where(is_on, jnp.log(0.3), jnp.log(0.7)) - 0.5 * (position["place"] - count - 2.0 * is_on) ** 2


MODEL = cm.Model(log_prior, lambda position, batch: 0.0 * position["place"] * batch, {})


@double_precision
def draws():
    target = CoresetTarget(jnp.zeros(1), jnp.zeros(1), MODEL)
    starts = {"count": jnp.full(4, 2), "is_on": jnp.zeros(4, bool), "place": jnp.zeros(4)}
    kernel = MixedSlice()
    kernel.check(jax.tree.map(lambda leaf: leaf[0], starts), target)

    @jax.jit
    def run(key, chains):
        def advance(chains, step_key):
            chains, info = step_chains(kernel, step_key, chains, target)
            return chains, (chains.position, info)

        return jax.lax.scan(advance, chains, jax.random.split(key, NUM_STEPS))[1]

    return jax.tree.map(np.asarray, run(jax.random.key(1), init_chains(kernel, starts, target)))


@pytest.mark.statistical
@pytest.mark.full
def test_the_target_is_left_as_it_is():
    """Means of all three, and of the products that tell whether they depend on each other as they should."""
    position, info = draws()
    assert position["count"].dtype.kind == "i"
    assert position["is_on"].dtype == bool
    assert not info.diverging.any()
    count, is_on, place = (position[name].astype(float) for name in ("count", "is_on", "place"))
    expected = {
        "count": (count, RATE),
        "count squared": (count**2, RATE + RATE**2),
        "is_on": (is_on, 0.3),
        "place": (place, RATE + 0.6),
        "both": (count * place, RATE + RATE**2 + 0.6 * RATE),
    }
    for name, (values, mean) in expected.items():
        ess = float(cm.metrics.bulk_ess(values.T[..., None])[0])
        assert ess > 200, name
        assert values.mean() == pytest.approx(mean, abs=4.5 * values.std() / np.sqrt(ess)), name


def test_numbers_that_a_type_cannot_hold_are_impossible():
    position = {"a": jnp.array(True), "b": jnp.array(3, jnp.uint8), "c": jnp.array(0.5)}
    np.testing.assert_array_equal(real_coordinates(position), [False, False, True])
    flat, unravel = flat_numbers(position)
    back = unravel(flat + jnp.array([1.0, -4.0, 0.0]))
    assert {name: leaf.dtype for name, leaf in back.items()} == {name: leaf.dtype for name, leaf in position.items()}
    assert not np.array_equal(flat_numbers(back)[0], flat + jnp.array([1.0, -4.0, 0.0]))


@pytest.mark.full
@pytest.mark.parametrize("method", [None, cm.CoresetMCMC(num_iterations=50)], ids=["default", "coreset-mcmc"])
def test_a_model_with_whole_numbers_is_fitted_without_further_ado(method):
    """A level among 0 to 9 and the logarithm of a spread, against their posterior on a grid."""
    data = {"y": np.random.default_rng(0).normal(3.3, 4.0, 300)}
    model = cm.Model(
        lambda position: (
            jnp.where((position["level"] >= 0) & (position["level"] < 10), 0.0, -jnp.inf)
            - 0.5 * (position["log_spread"] / 10) ** 2
        ),
        lambda position, batch: (
            -position["log_spread"] - 0.5 * ((batch["y"] - position["level"]) * jnp.exp(-position["log_spread"])) ** 2
        ),
        {"level": 1, "log_spread": 0.0},
    )
    options = {"coreset_size": 30, "draws": 500, "tune": 200, "random_seed": 3, "progressbar": False}
    if method is not None:
        with pytest.warns(UserWarning, match="estimated KL|R-hat|ESS"):
            fitted = cm.fit(model, data, method=method, **options)
        assert fitted.posterior["level"].dtype.kind == "i", "a kernel was found; fifty steps train nothing"
        return
    fitted = cm.fit(model, data, **options)
    levels, grid = np.arange(10), np.linspace(1.0, 1.8, 801)
    squares = np.array([np.sum((data["y"] - level) ** 2) for level in levels])
    log_density = -300 * grid - 0.5 * squares[:, None] * np.exp(-2 * grid) - 0.5 * (grid / 10) ** 2
    density = np.exp(log_density - log_density.max())
    share = density.sum(axis=1) / density.sum()
    drawn = fitted.posterior["level"].to_numpy()
    ess = float(cm.metrics.bulk_ess(drawn[..., None].astype(float))[0])
    slack = 4.5 / np.sqrt(ess) + np.sqrt(2 * fitted.kl_estimate)
    mean, spread = share @ levels, np.sqrt(share @ levels**2 - (share @ levels) ** 2)
    assert drawn.mean() == pytest.approx(mean, abs=slack * spread)
    assert fitted.kl_estimate < 0.05
