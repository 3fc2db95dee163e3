"""Derivatives by differences: right where a function is smooth, of any scale, at edges, and refused where it is not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.models.differences import is_smooth, lengths_at, stencil
from coreset_mcmc.models.host import HostFunction

RNG = np.random.default_rng(0)
ROWS = RNG.normal(2.0, 1.5, size=50)
SIZES = np.array([1.0, 1e-6, 1e3])
"""Of what the three coordinates are counted in."""


def normal_rows(flat: np.ndarray) -> np.ndarray:
    """Log-likelihoods (K, B) of a normal with a mean, a slope of the row number and a log scale, in odd units."""
    mean, slope, log_scale = (flat / SIZES).T[:, :, None]
    with np.errstate(over="ignore"):
        z = (ROWS - mean - slope * np.linspace(-1, 1, len(ROWS))) * np.exp(-log_scale)
        return -log_scale - 0.5 * z**2


def in_jax(flat: jax.Array) -> jax.Array:
    mean, slope, log_scale = flat / SIZES
    z = (ROWS - mean - slope * np.linspace(-1, 1, len(ROWS))) * jnp.exp(-log_scale)
    return -log_scale - 0.5 * z**2


def flat_prior(flat: np.ndarray) -> np.ndarray:
    return np.zeros(len(flat))


START = np.array([0.5, 0.3, 0.2]) * SIZES


def test_lengths_follow_the_units_of_each_coordinate():
    lengths = lengths_at(flat_prior, normal_rows, START) / SIZES
    assert np.all((lengths > 0.05) & (lengths < 5.0))
    mantissas, _ = np.frexp(lengths_at(flat_prior, normal_rows, START))
    assert np.all(mantissas == 0.5)


def test_a_coordinate_that_rows_hardly_read_has_the_length_of_the_change_there_is():
    def bounded(flat: np.ndarray) -> np.ndarray:
        return 1e-3 * np.tanh(100.0 * flat[:, :1]) * np.ones(5)

    assert 1e-3 < lengths_at(flat_prior, bounded, np.zeros(1))[0] < 0.03
    assert lengths_at(flat_prior, lambda flat: np.zeros((len(flat), 5)), np.full(1, 3.0))[0] == 4.0


def test_the_likelihood_is_not_asked_outside_the_support():
    def prior(flat: np.ndarray) -> np.ndarray:
        return np.where(flat[:, 0] > 0, 0.0, -np.inf)

    def likelihood(flat: np.ndarray) -> np.ndarray:
        assert np.all(flat > 0)
        return np.log(flat) - flat

    assert np.isfinite(lengths_at(prior, likelihood, np.ones(1))[0])


@pytest.mark.full
@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
def test_values_gradients_and_hessians_of_rows(factor):
    """Also with lengths that are wrong by a hundred: what is cut off grows by its square, and so does rounding."""
    lengths = tuple(factor * lengths_at(flat_prior, normal_rows, START))
    for order, exponent in ((1, 6), (2, 4)):
        rule = stencil(order, lengths)
        found = rule.derivatives(normal_rows(START + rule.displacements)[None])[0]
        with jax.enable_x64(True):
            expected = np.concatenate([np.asarray(part) for part in _exact(order)], axis=1)
        scale = np.abs(expected).max(axis=0)
        tolerance = 10.0**-exponent * (1.0 if factor == 1.0 else 1e3)
        np.testing.assert_allclose(found / scale, expected / scale, atol=tolerance)


def _exact(order: int) -> list[jax.Array]:
    parts = [in_jax(jnp.asarray(START))[:, None], jax.jacfwd(in_jax)(jnp.asarray(START))]
    return parts if order == 1 else [*parts, jax.hessian(in_jax)(jnp.asarray(START)).reshape(len(ROWS), -1)]


def test_at_an_edge_slopes_are_one_sided_and_beyond_it_zero():
    rule = stencil(2, (1.0,))

    def exponential(flat: np.ndarray) -> np.ndarray:
        return np.where(flat <= 1.0, flat, -np.inf)

    at_edge = rule.derivatives(exponential(np.ones((1, 1)) + rule.displacements)[None])[0, 0]
    np.testing.assert_allclose(at_edge, [1.0, 1.0, 0.0], atol=1e-9)
    beyond = rule.derivatives(exponential(np.full((1, 1), 2.0) + rule.displacements)[None])[0, 0]
    np.testing.assert_array_equal(beyond, [-np.inf, 0.0, 0.0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda flat: -((ROWS - flat[:, :1]) ** 2), True),
        (lambda flat: -np.abs(ROWS - flat[:, :1]), True),
        (lambda flat: -((ROWS - flat[:, :1]) ** 2).astype(np.float32), True),
        (lambda flat: -((ROWS - np.round(flat[:, :1], 1)) ** 2), False),
        (lambda flat: -((ROWS - flat[:, :1]) ** 2) + 0.1 * RNG.normal(size=(len(flat), len(ROWS))), False),
    ],
    ids=["smooth", "kinks", "single precision", "staircase", "noise"],
)
def test_what_is_smooth(function, expected):
    positions = np.array([[0.33], [0.71]])
    lengths = lengths_at(flat_prior, function, positions[0])
    assert is_smooth(function, positions, lengths) is expected


@pytest.mark.full
def test_jax_differentiates_a_host_function_twice():
    """Under vmap too; a Hessian is one call."""
    calls = []

    def function(positions, rows):
        calls.append(len(positions["a"]))
        flat = np.concatenate([positions["a"], positions["b"][:, None]], axis=1)
        return normal_rows(flat * SIZES)[:, : len(rows)]

    with jax.enable_x64(True):
        host = HostFunction(function, True, "log_likelihood(position, rows)", (1.0, 1.0, 1.0))
        rows = jnp.zeros(len(ROWS))

        def total(at):
            return jnp.sum(host({"a": at[:2], "b": at[2]}, rows))

        places = jnp.stack([jnp.asarray(START / SIZES), jnp.asarray([0.1, 0.2, 0.3])])
        hessians = jax.jit(jax.vmap(jax.hessian(total)))(places)
        assert calls == [2 * 13]
        expected = jax.vmap(jax.hessian(lambda at: jnp.sum(in_jax(at * SIZES))))(places)
        np.testing.assert_allclose(hessians, expected, rtol=1e-4, atol=1e-3)
        slopes = jax.jit(jax.vmap(jax.grad(total)))(places)
        np.testing.assert_allclose(
            slopes, jax.vmap(jax.grad(lambda at: jnp.sum(in_jax(at * SIZES))))(places), rtol=1e-6, atol=1e-6
        )
