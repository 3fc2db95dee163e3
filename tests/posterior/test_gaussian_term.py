"""The Gaussian factor of a coreset posterior: its algebra, and a target that has one."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.trees import coordinate_names, flat_positions
from coreset_mcmc.kernels.base import init_chains, step_chains
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.posterior.gaussian_term import GaussianTerm, half_square, no_term
from coreset_mcmc.posterior.target import CoresetTarget

NUM_ROWS, NUM_FEATURES = 12, 2
DIM = NUM_FEATURES + 1


def a_term(rng):
    factor = rng.normal(size=(DIM, DIM))
    return GaussianTerm(rng.normal(size=DIM), rng.normal(size=DIM), factor @ factor.T)


def a_target(rng, term):
    rows = {"x": rng.normal(size=(NUM_ROWS, NUM_FEATURES)), "y": (rng.random(NUM_ROWS) < 0.5).astype(float)}
    return CoresetTarget(rows, jnp.asarray(rng.exponential(size=NUM_ROWS)), cm.models.logistic_regression(2), term)


def test_density_by_hand_on_the_host_and_in_programs(rng):
    term, flat = a_term(rng), rng.normal(size=(5, DIM))
    expected = [
        term.slope @ (at - term.centre) - 0.5 * (at - term.centre) @ term.precision @ (at - term.centre) for at in flat
    ]
    np.testing.assert_allclose(term.at(flat), expected)
    for at, value in zip(flat, expected, strict=True):
        np.testing.assert_allclose(term.log_density({"beta": jnp.asarray(at)}), value)


def test_derivatives_of_the_square_are_those_of_its_formula(rng):
    """Of any order and in either argument, though the gradient is written down by hand."""
    precision, delta = a_term(rng).precision, rng.normal(size=DIM)

    def formula(precision, delta):
        return 0.5 * delta @ (precision @ delta)

    for of in (jax.grad, jax.hessian, jax.jacfwd):
        np.testing.assert_allclose(of(half_square, 1)(precision, delta), of(formula, 1)(precision, delta))
    symmetric = jax.grad(formula)(precision, delta)
    np.testing.assert_allclose(jax.grad(half_square)(precision, delta), symmetric)
    both = [jax.jvp(lambda t, of=of: of(t * precision, t * delta), (1.0,), (1.0,))[1] for of in (half_square, formula)]
    np.testing.assert_allclose(*both)


def test_a_target_adds_its_term_and_so_does_its_line(rng):
    """Directly, and along a line, where the linear predictor is split off."""
    term = a_term(rng)
    target = a_target(rng, term)
    alone = replace(target, term=None)
    position, direction = {"beta": jnp.asarray(rng.normal(size=DIM))}, {"beta": jnp.asarray(rng.normal(size=DIM))}
    on_line = target.along(position, direction)
    for t in (0.0, -0.7, 2.0):
        at = {"beta": position["beta"] + t * direction["beta"]}
        expected = alone.log_density(at) + term.log_density(at)
        np.testing.assert_allclose(target.log_density(at), expected)
        np.testing.assert_allclose(on_line(jnp.asarray(t)), expected)


def test_sums_and_multiples_are_those_of_the_densities(rng):
    """Up to a constant, although the centres differ."""
    one, other, flat = a_term(rng), a_term(rng), rng.normal(size=(6, DIM))
    for made, expected in ((one + other, one.at(flat) + other.at(flat)), (one.times(0.25), 0.25 * one.at(flat))):
        difference = made.at(flat) - expected
        np.testing.assert_allclose(difference, difference[0], atol=1e-10)


def test_no_term_changes_nothing(rng):
    target = a_target(rng, no_term(DIM))
    position = {"beta": jnp.asarray(rng.normal(size=DIM))}
    assert target.log_density(position) == replace(target, term=None).log_density(position)


@pytest.mark.statistical
def test_slices_sample_a_target_with_a_term(seed):
    """With rows of weight zero the draws are those of a standard normal prior times the term: a Gaussian."""
    rng = np.random.default_rng(seed)
    term = a_term(rng)
    model = cm.models.logistic_regression(2)
    normal = cm.Model(lambda position: -0.5 * jnp.sum(position["beta"] ** 2), model.log_likelihood, {})
    target = replace(a_target(rng, term), weights=jnp.zeros(NUM_ROWS), model=normal)
    precision = term.precision + np.eye(DIM)
    mean = np.linalg.solve(precision, term.slope + term.precision @ term.centre)
    covariance = np.linalg.inv(precision)
    kernel = HitAndRunSlice(scale=jnp.asarray(np.linalg.cholesky(covariance)), num_directions=2 * DIM)
    chains = init_chains(kernel, {"beta": jnp.asarray(rng.normal(size=(200, DIM)))}, target)

    def advance(chains, key):
        return step_chains(kernel, key, chains, target)[0], None

    chains, _ = jax.jit(lambda c, k: jax.lax.scan(advance, c, k))(chains, jax.random.split(jax.random.key(seed), 40))
    draws = np.asarray(chains.position["beta"])
    errors = (draws.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / len(draws))
    assert np.abs(errors).max() < 5.5, "two hundred independent chains: a false alarm in 1e7"
    without = np.linalg.solve(np.eye(DIM) + 1e-9, np.zeros(DIM))
    assert np.abs((without - mean) / np.sqrt(np.diag(covariance) / len(draws))).max() > 5.5, "the broken twin"


def test_names_follow_the_flat_position():
    position = {"b": np.arange(4.0).reshape(2, 2), "a": np.array(9.0)}
    assert coordinate_names(position) == ("a", "b[0,0]", "b[0,1]", "b[1,0]", "b[1,1]")
    np.testing.assert_array_equal(
        flat_positions(jax.tree.map(lambda leaf: leaf[None], position))[0], [9.0, 0.0, 1.0, 2.0, 3.0]
    )
