"""A coreset of rows drawn in proportion to how much their log-likelihood varies over the posterior.

With sigma_n the norm of the vector of row n (:mod:`coreset_mcmc.methods.other_coresets.row_vectors`), M rows are drawn
with replacement with probabilities sigma_n / sum(sigma), and each draw adds sum(sigma) / (M sigma_n) to the weight of
its row. The weighted log-likelihood is then unbiased for the full one at every position, with the least expected
squared error, over the Gaussian at the mode, of any such probabilities (Campbell and Broderick 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.other_coresets.row_vectors import ComparesRows, draws_at_mode, padded, row_vectors
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.posterior.newton import NewtonSearchState
from coreset_mcmc.posterior.problem import Problem


def norms_of_all_rows(problem: Problem, positions: Position) -> jax.Array:
    """sigma (N,): the one thing of size N that is kept."""

    def of_block(rows: Batch) -> jax.Array:
        result: jax.Array = jnp.linalg.norm(row_vectors(problem.model, positions, rows), axis=0)
        return result

    return problem.data.map_over_rows(of_block)


def draw_in_proportion(key: Key, norms: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """``count`` row numbers with replacement, and for each the weight that makes weighted sums unbiased."""
    total = jnp.sum(norms)
    shares = jnp.where(total > 0, norms / total, 1.0 / norms.size)
    indices = jax.random.choice(key, norms.size, (count,), p=shares)
    return indices.astype(jnp.int32), 1.0 / (count * shares[indices])


class ImportanceState(NamedTuple):
    """First the search for the mode, then the drawn rows."""

    search: NewtonSearchState
    positions: Position
    """Draws of the Gaussian at the mode, once it is found."""
    indices: jax.Array
    """(M,), with repetitions."""
    weights: jax.Array
    """(M,), of each draw."""
    done: jax.Array


class ImportanceInfo(NamedTuple):
    """What one step reports; NaN where it does not apply."""

    newton_decrement: jax.Array
    kl_estimate: jax.Array
    """Half the variance, over the Gaussian at the mode, of what the coreset leaves of the log-likelihood; expected."""
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class ImportanceSampling(ComparesRows):
    """Draw the rows of the coreset by the norms of their log-likelihoods; there is nothing else to train.

    Args:
        kernel: samples the coreset posterior. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot.
        num_projections: S, draws of the Gaussian at the mode; each costs one pass over the data.
        max_iterations: most Newton steps in the search for the mode.
    """

    kernel: Kernel | None = None
    num_projections: int = static(default=200)
    max_iterations: int = 200

    name = "importance-sampling"

    @property
    def max_steps(self) -> int:
        return self.max_iterations + 1

    def init(self, key: Key, problem: Problem) -> ImportanceState:
        del key
        return ImportanceState(
            search=self.search.init(problem),
            positions=self.repeated_start(problem),
            indices=jnp.zeros(problem.coreset_size, jnp.int32),
            weights=jnp.zeros_like(problem.initial_weights),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: ImportanceState, problem: Problem) -> tuple[ImportanceState, ImportanceInfo]:
        stepped: tuple[ImportanceState, ImportanceInfo] = jax.lax.cond(
            state.search.has_converged,
            lambda: self._draw_rows(key, state, problem),
            lambda: self._search_step(state, problem),
        )
        return stepped

    def finish(self, state: ImportanceState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        if not state.done:
            raise RunError(f"{self.name}: stopped before the rows were drawn. Let training run to its end.")
        indices, places = np.unique(np.asarray(state.indices), return_inverse=True)
        merged = np.bincount(places, weights=np.asarray(state.weights))
        coreset = padded(indices, merged, problem.coreset_size)
        return sample_coreset(problem, coreset, state.positions, kernel or self.moving_kernel, num_chains)

    def describe_rows(self, info: ImportanceInfo) -> str:
        return f"estimated KL {info.kl_estimate[-1]:.3g}"

    def _search_step(self, state: ImportanceState, problem: Problem) -> tuple[ImportanceState, ImportanceInfo]:
        search, info = self.search.step(state.search, problem)
        nothing = jnp.full_like(info.newton_decrement, jnp.nan)
        return state._replace(search=search), ImportanceInfo(
            info.newton_decrement, nothing, info.num_evaluations, info.status
        )

    def _draw_rows(self, key: Key, state: ImportanceState, problem: Problem) -> tuple[ImportanceState, ImportanceInfo]:
        noise_key, row_key = jax.random.split(key)
        positions = draws_at_mode(noise_key, state.search, problem, self.num_projections)
        norms = norms_of_all_rows(problem, positions)
        is_finite = jnp.all(jnp.isfinite(norms))
        indices, weights = draw_in_proportion(row_key, jnp.where(is_finite, norms, 1.0), problem.coreset_size)
        vectors = row_vectors(problem.model, positions, problem.data.take(indices))
        drawn = state._replace(positions=positions, indices=indices, weights=weights, done=jnp.array(True))
        info = ImportanceInfo(
            newton_decrement=jnp.full_like(norms[0], jnp.nan),
            kl_estimate=expected_half_variance(vectors, weights),
            num_evaluations=jnp.asarray(self.num_projections * (problem.data.size + problem.coreset_size), jnp.int64),
            status=jnp.where(is_finite, Status.OK.value, Status.PROJECTION_NOT_FINITE.value).astype(jnp.int32),
        )
        return drawn, info


def expected_half_variance(vectors: jax.Array, weights: jax.Array) -> jax.Array:
    """Half the expected squared distance of the weighted sum of M drawn vectors (S, M) from that of all rows, unbiased.

    Close to the expected KL from the coreset posterior to the full one where that is small.
    """
    terms = vectors * weights
    count = terms.shape[1]
    return 0.5 * jnp.sum((terms - jnp.mean(terms, axis=1, keepdims=True)) ** 2) * count / max(count - 1, 1)
