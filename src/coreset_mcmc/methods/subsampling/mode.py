"""A stochastic search for the posterior mode with Adam, the training stage of the control-variate methods.

Each step moves along the gradient of log prior + (N / n) * (log-likelihood of n fresh rows), as in appendix C.2 of the
paper. The search ends when an update is below the tolerance in every coordinate. Adam's updates are about as large as
its rate while the gradient has a sign and fluctuate around a quarter of it when the gradient is noise, so the tolerance
must be below the rate. A mode that is far away takes as many iterations as it is rates away, and with many coordinates
it may take long until all updates happen to be small at once: the number of iterations is a bound for searches that
would never end, and a search that it has ended says so.

The authors' code compares each update with the size of its own coordinate instead. Then a coordinate ends the search
the sooner the larger it is, wherever the mode may be: at a rate of 1e-3 and a tolerance of 1e-4 every one above 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.posterior.problem import Problem


class ModeSearchState(NamedTuple):
    """Where the search is, and Adam's moments."""

    position: Position
    optimizer: Any
    done: jax.Array


class ModeSearchInfo(NamedTuple):
    """What one iteration reports."""

    log_density: jax.Array
    """Log posterior before the update, estimated from the minibatch."""
    gradient_norm: jax.Array
    update_size: jax.Array
    """The largest absolute change of a coordinate."""
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class ModeSearch:
    """How the mode is searched.

    Args:
        learning_rate: Adam's rate, 1e-3 in the paper.
        subsample_size: rows in each gradient, or all if there are fewer; the paper uses 100, and 1 000 for Poisson
            regression.
        tolerance: stop when every coordinate moves by less than this; the paper uses 5e-5 to 1e-3.
        max_iterations: stop then at the latest; ``fit.settings["shortfall"]`` and a warning say so. With 0 the start
            itself is taken for the mode.
        is_relative: whether the tolerance is a share of each coordinate, as in the authors' code.
    """

    learning_rate: float = 1e-3
    subsample_size: int = static(default=100)
    tolerance: float = 5e-5
    max_iterations: int = 1_000_000
    is_relative: bool = static(default=False)

    def __post_init__(self) -> None:
        require_positive("ModeSearch learning_rate", self.learning_rate)
        require_positive("ModeSearch tolerance", self.tolerance)
        require_count("ModeSearch subsample_size", self.subsample_size, at_least=1, fix="Use 100 or more.")
        if isinstance(self.max_iterations, int):
            require_count(
                "ModeSearch max_iterations", self.max_iterations, at_least=0, fix="Use 0 to start at the mode."
            )
        is_number = isinstance(self.learning_rate, int | float) and isinstance(self.tolerance, int | float)
        if is_number and not self.is_relative:
            require(
                self.tolerance < self.learning_rate,
                "ModeSearch tolerance",
                got=self.tolerance,
                expected=f"less than the learning rate {self.learning_rate}",
                fix="Adam's first update is as large as its rate, so the search would end at once.",
            )

    def init(self, position: Position) -> ModeSearchState:
        return ModeSearchState(position, optax.adam(self.learning_rate).init(position), jnp.array(False))

    def step(self, key: Key, state: ModeSearchState, problem: Problem) -> tuple[ModeSearchState, ModeSearchInfo]:
        model, size = problem.model, problem.data.size
        count = min(self.subsample_size, size)
        batch = problem.data.take(without_replacement(key, size, count))

        def negative_log_density(position: Position) -> jax.Array:
            return -model.log_prior(position) - (size / count) * jnp.sum(model.log_likelihood(position, batch))

        value, gradient = jax.value_and_grad(negative_log_density)(state.position)
        updates, optimizer = optax.adam(self.learning_rate).update(gradient, state.optimizer, state.position)
        flat_gradient, flat_updates = ravel_pytree(gradient)[0], ravel_pytree(updates)[0]
        is_finite = jnp.all(jnp.isfinite(flat_gradient))
        sizes = jnp.abs(ravel_pytree(state.position)[0]) if self.is_relative else 1.0
        moved = ModeSearchState(
            position=optax.apply_updates(state.position, updates),
            optimizer=optimizer,
            done=jnp.all(jnp.abs(flat_updates) < self.tolerance * sizes),
        )
        info = ModeSearchInfo(
            log_density=-value,
            gradient_norm=jnp.linalg.norm(flat_gradient),
            update_size=jnp.max(jnp.abs(flat_updates)),
            num_evaluations=jnp.asarray(count, jnp.int64),
            status=jnp.where(is_finite, Status.OK.value, Status.GRADIENT_NOT_FINITE.value).astype(jnp.int32),
        )
        return moved, info

    def shortfall(self, state: ModeSearchState) -> str:
        """What to say of a search that the number of iterations has ended."""
        if bool(state.done) or self.max_iterations == 0:
            return ""
        return (
            f"The search for the mode ended after max_iterations={self.max_iterations:,} updates, before they fell "
            f"below tolerance={self.tolerance:g}: the mode may be far away. Allow more of them, or start closer with "
            "initvals."
        )
