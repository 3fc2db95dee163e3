"""The full posterior by passes over rows that may be anywhere: derivatives at one position, the mode.

What is compiled are small programs for a leaf of rows; the search itself is a few lines of NumPy between passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.trees import dimension
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import RowFunction, SumOver, Task
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior import predictor_sums
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchInfo, NewtonSearchState
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.row_sums import RowSums, likelihood_derivatives, prior_derivatives, row_sums, with_prior
from coreset_mcmc.posterior.second_order import Derivatives

Unravel = predictor_sums.Unravel


@dataclass(frozen=True)
class _RowDerivatives:
    """What value, gradient and Hessian of the weighted log-likelihood of a block follow from."""

    model: Model
    unravel: Unravel

    def __call__(self, batch: Batch, weights: jax.Array, flat: jax.Array) -> RowSums:
        return row_sums(self.model, self.unravel, batch, weights, flat)


@cache
def _compiled(function: Callable[..., Any]) -> Any:
    """Of no row: compiled soon rather than fast."""
    return jax.jit(function, static_argnums=(0, 1), compiler_options=quick_compilation(1) or None)


@dataclass(frozen=True)
class FullPosterior:
    """A model and all its rows; the structure of positions is that of ``position``."""

    model: Model
    rows: Rows
    position: Position

    @property
    def unravel(self) -> Unravel:
        result: Unravel = ravel_pytree(self.position)[1]
        return result

    @property
    def row_derivatives(self) -> RowFunction:
        """The likelihood's part of :meth:`derivatives`: a function of rows, their weights and a flat position."""
        return _RowDerivatives(self.model, self.unravel)

    def prior_derivatives(self, flat: np.ndarray) -> Derivatives:
        """Value, gradient and Hessian of the log-prior at a flat position."""
        result: Derivatives = jax.tree.map(np.asarray, _compiled(prior_derivatives)(self.model, self.unravel, flat))
        return result

    def likelihood_gradient(self, flat: np.ndarray, description: str) -> np.ndarray:
        """Of all rows, without the prior: zero exactly where no row reads a parameter."""
        sums = self.rows.sum(self.row_derivatives, flat, description=description)
        return np.asarray(_compiled(likelihood_derivatives)(self.model, self.unravel, flat, sums).gradient)

    def derivatives(self, flat: np.ndarray, description: str) -> Derivatives:
        """Value, gradient and Hessian of the full log-density at a flat position, in one pass."""
        return self.derivatives_at([flat], description)[0]

    def derivatives_at(self, positions: Sequence[np.ndarray], description: str) -> list[Derivatives]:
        """The same at several flat positions, which share the pass and its program."""
        tasks = [Task(SumOver(self.row_derivatives), (flat,)) for flat in positions]
        return [
            self._with_prior(flat, sums)
            for flat, sums in zip(positions, self.rows.scan(tasks, description), strict=True)
        ]

    def _with_prior(self, flat: np.ndarray, sums: Any) -> Derivatives:
        total: Derivatives = jax.tree.map(np.asarray, _compiled(with_prior)(self.model, self.unravel, flat, sums))
        return total._replace(value=np.where(total.value < np.inf, total.value, -np.inf))

    def trace_with_prior(self, flat: np.ndarray, sums: Any) -> Any:
        """The program that adds the prior to sums of such shapes, traced."""
        return _compiled(with_prior).trace(self.model, self.unravel, flat, sums)

    @property
    def num_derivative_evaluations(self) -> int:
        """What that costs, in log-likelihoods of single rows: a gradient, and a product for each coordinate."""
        return self.rows.size * (1 + dimension(self.position))

    def newton_step(
        self, search: NewtonSearch, state: NewtonSearchState, description: str = "looking for the mode"
    ) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        """One step of a search that began at a NumPy array: one pass."""
        proposal = search.propose(state)
        with np.errstate(all="ignore"):
            moved, info = search.judge(state, proposal, self.derivatives(proposal.position, description))
        return moved, info._replace(num_evaluations=np.int64(self.num_derivative_evaluations))

    def find_mode(self, search: NewtonSearch, start: np.ndarray) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        """Steps until the mode is found or the search fails; the info counts all evaluations."""
        state, num_evaluations = search.begin(start), 0
        while True:
            state, info = self.newton_step(search, state)
            num_evaluations += int(info.num_evaluations)
            if state.has_converged or info.status:
                return state, info._replace(num_evaluations=np.int64(num_evaluations))


def flat_position(position: Position) -> np.ndarray:
    """A position as one NumPy array."""
    leaves = [np.asarray(leaf, np.float64).reshape(-1) for leaf in jax.tree.leaves(position)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def mode_key(model: Model, start: np.ndarray) -> Hashable:
    """Under what the mode is remembered by rows: it follows from the model and from where the search began."""
    return "mode", model, start.tobytes()


def posterior_of(problem: Problem) -> FullPosterior:
    """That of a problem whose data are rows to be passed over."""
    return FullPosterior(problem.model, problem.passes, problem.position)
