"""Rows as vectors: how the log-likelihood of each row varies over draws of a cheap approximation of the posterior.

v_n = (l_n(theta_s) - mean over s) / sqrt(S) for S draws theta_s of the Gaussian at the mode. Inner products of these
vectors are covariances of log-likelihoods under the Gaussian (Campbell and Broderick 2019, Automated scalable Bayesian
inference via Hilbert coresets, Journal of Machine Learning Research 20).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.contract import Needs
from coreset_mcmc.methods.sums import centred, log_likelihood_matrix
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchState, approximation_at
from coreset_mcmc.posterior.problem import Problem


def draws_at_mode(key: Key, search: NewtonSearchState, problem: Problem, count: int) -> Position:
    """``count`` positions from the Gaussian at the mode."""
    noise = jax.random.normal(key, (count, search.position.shape[0]), search.position.dtype)
    return jax.vmap(ravel_pytree(problem.position)[1])(approximation_at(search).draws(noise))


def row_vectors(model: Model, positions: Position, batch: Batch) -> jax.Array:
    """The vectors (S, B) of the rows of a batch, one column for each."""
    values = log_likelihood_matrix(model, positions, batch)
    return centred(values) / math.sqrt(values.shape[0])


def padded(indices: np.ndarray, weights: np.ndarray, coreset_size: int) -> SelectedRows:
    """Fill up to ``coreset_size`` with other rows of weight zero, so that shapes do not depend on luck."""
    num_missing = coreset_size - len(indices)
    others = np.setdiff1d(np.arange(coreset_size), indices)[:num_missing]
    return SelectedRows(
        np.concatenate([indices, others]).astype(np.int64), np.concatenate([weights, np.zeros(num_missing)])
    )


class ComparesRows(MovesByKernel):
    """A construction that finds the mode first, and compares rows at draws of the Gaussian there."""

    num_projections: int
    max_iterations: int

    needs = Needs(gradient=True, continuous=True)
    takes_few_steps = True

    def __post_init__(self) -> None:
        require_count("num_projections", self.num_projections, at_least=2, fix="Leave it out for 200.")
        NewtonSearch(self.max_iterations)  # refuses what is no number of steps

    def check(self, problem: Problem) -> None:
        require(
            1 <= problem.coreset_size <= problem.data.size,
            "coreset_size",
            got=problem.coreset_size,
            expected=f"1 to {problem.data.size}, the number of rows of the data",
            fix="Pass coreset_size to fit.",
        )
        self.moving_kernel.check(problem.position, problem.target(problem.initial_weights))

    @property
    def search(self) -> NewtonSearch:
        return NewtonSearch(self.max_iterations)

    def describe(self, info: Any) -> str:
        decrement = info.newton_decrement[-1]
        return self.describe_rows(info) if np.isnan(decrement) else f"{decrement:.2g} sd from the mode"

    @abstractmethod
    def describe_rows(self, info: Any) -> str:
        """What the progress bar shows once the mode is found."""

    def repeated_start(self, problem: Problem) -> Position:
        """What stands in the place of the draws before there are any."""
        start = jax.tree.map(lambda leaf: leaf[:1], problem.initial_positions)
        return jax.tree.map(lambda leaf: jnp.repeat(leaf, self.num_projections, axis=0), start)
