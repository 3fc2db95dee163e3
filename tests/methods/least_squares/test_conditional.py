"""A centre where there is no joint mode: parameters that rows read, held ones, and a hierarchical model."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.methods.least_squares.conditional import held, unread_coordinates, with_spread
from coreset_mcmc.posterior.by_passes import flat_position
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc.posterior.second_order import Derivatives

NUM_GROUPS, SIZE = 30, 3_000


def grouped_rows(seed=0):
    """A hundred rows for each group but the last, which has none; effects with a deviation of 0.2."""
    rng = np.random.default_rng(seed)
    group = np.arange(SIZE) % (NUM_GROUPS - 1)
    x = rng.normal(size=(SIZE, 1))
    effects = 0.2 * rng.normal(size=NUM_GROUPS) - 1.5
    chance = 1.0 / (1.0 + np.exp(-(0.5 * x[:, 0] + effects[group])))
    return {"x": x, "group": group, "y": (rng.random(SIZE) < chance).astype(float)}


@pytest.fixture(scope="module")
def problem():
    data, model = grouped_rows(), cm.models.hierarchical_logistic_regression(1, NUM_GROUPS)
    chosen = Uniform().select(np.random.default_rng(0), data, SIZE, 40)
    with jax.enable_x64(True):
        return make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))


def test_parameters_that_no_row_reads(problem):
    """Positions are flattened by name: beta, effects, log_scale, mean. The last group has no rows."""
    is_unread = unread_coordinates(problem, flat_position(problem.position))
    np.testing.assert_array_equal(np.flatnonzero(is_unread), [NUM_GROUPS, NUM_GROUPS + 1, NUM_GROUPS + 2])


def test_what_is_held_does_not_move_and_the_rest_is_as_if_alone(rng):
    factor = rng.normal(size=(4, 4))
    hessian, gradient = -factor @ factor.T, rng.normal(size=4)
    is_held = np.array([False, True, False, False])
    found = held(Derivatives(1.0, gradient, hessian), is_held)
    step = np.linalg.solve(-found.hessian, found.gradient)
    assert step[1] == 0.0
    free = ~is_held
    np.testing.assert_allclose(step[free], np.linalg.solve(-hessian[np.ix_(free, free)], gradient[free]))


def test_spread_of_draws_for_what_is_held(rng):
    flat = rng.normal(scale=[1.0, 7.0, 2.0], size=(50, 3))
    factor = with_spread(np.tril(np.ones((3, 3))), np.array([False, True, False]), flat)
    np.testing.assert_allclose(factor, [[1, 0, 0], [0, flat[:, 1].std(ddof=1), 0], [1, 0, 1]])


@pytest.mark.full
def test_a_hierarchical_model_without_a_mode():
    """Likelihood variances of the effects are above a third of theirs, where no joint mode exists."""
    data = grouped_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cm.fit(
            cm.models.hierarchical_logistic_regression(1, NUM_GROUPS),
            data,
            coreset_size=100,
            draws=500,
            random_seed=2,
            progressbar=False,
        )
        corrected = fit.reweight(progressbar=False)
    assert fit.has_term
    assert not np.isinf(fit.coreset.term.centre).any()
    assert fit.kl_estimate < 0.2
    own, right = fit.posterior["log_scale"], corrected.posterior["log_scale"]
    assert abs(float(own.mean() - right.mean())) < 0.4 * float(right.std())
    assert 0.8 < float(own.std() / right.std()) < 1.25
