"""Regressions whose posteriors have a mode, as problems of which the rows come in blocks."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.models import linear_regression, logistic_regression, poisson_regression
from coreset_mcmc.posterior.problem import make_problem, starting_positions

NUM_FEATURES = 3
SIZE = 1_500


def make(model, data, rows_per_block=2_048):
    size = jax.tree.leaves(data)[0].shape[0]
    selected = Given([0]).select(np.random.default_rng(0), data, size, None)
    blocked = replace(to_array_data(data), rows_per_block=rows_per_block)
    return make_problem(model, blocked, selected, starting_positions(model, jax.random.key(0), 1))


def regression_data(name, size=SIZE):
    """Features of different scales, and responses that put the mode where the paper's data do."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(size, NUM_FEATURES)) * np.array([1.0, 0.1, 5.0])
    slopes = np.array([1.0, -2.0, 0.3])
    responses = {
        "poisson": lambda: rng.poisson(np.maximum(186.0 + 40.0 * x @ slopes, 0.01)).astype(float),
        "logistic": lambda: (rng.random(size) < 1 / (1 + np.exp(-x @ slopes))).astype(float),
        "rare": lambda: (np.arange(size) < 5).astype(float),
        "linear": lambda: x @ slopes + 40.0 * rng.normal(size=size),
        "linear, little noise": lambda: x @ slopes + 0.01 * rng.normal(size=size),
    }
    return {"x": x, "y": responses[name]()}


MODELS = {
    "poisson": poisson_regression,
    "logistic": logistic_regression,
    "rare": logistic_regression,
    "linear": linear_regression,
    "linear, little noise": linear_regression,
}


def unblocked(problem):
    """The same log-density written as one sum over all rows, as a function of the flat position."""
    unravel = ravel_pytree(problem.position)[1]

    def log_density(flat):
        at = unravel(flat)
        return problem.model.log_prior(at) + jnp.sum(problem.model.log_likelihood(at, problem.data.arrays))

    return log_density
