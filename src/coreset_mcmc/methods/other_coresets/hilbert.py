"""Hilbert coresets by greedy iterative geodesic ascent.

Rows are vectors v_n (:mod:`coreset_mcmc.methods.other_coresets.row_vectors`), and a few of them, with weights w >= 0,
are to add up to the sum L of all. On the unit sphere the current approximation y moves along the geodesic towards the
row that points most nearly from y to L, as far as brings it closest (Campbell and Broderick 2018, Bayesian coreset
construction via greedy iterative geodesic ascent, ICML; Algorithm 1). The chosen rows are weighted anew at the end by
non-negative least squares. Vectors of rows that are not chosen are never kept: each greedy step evaluates all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import RunError, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.other_coresets.row_vectors import ComparesRows, draws_at_mode, padded, row_vectors
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.posterior.newton import NewtonSearchState
from coreset_mcmc.posterior.problem import Problem

PARALLEL = 1e-14
"""A row whose squared sine to the current approximation is below this points the same way: it cannot help."""


class GreedyState(NamedTuple):
    """The chosen rows, in M slots, and the approximation that they make on the unit sphere."""

    approximation: jax.Array
    """y (S,), of norm one; zero before the first row."""
    indices: jax.Array
    """(M,), -1 where no row is chosen yet."""
    vectors: jax.Array
    """(M, S), v_n of the chosen rows."""
    coefficients: jax.Array
    """(M,): y is the sum of these times v_n / |v_n|."""
    num_chosen: jax.Array
    num_steps: jax.Array


class HilbertState(NamedTuple):
    """First the search for the mode, then one pass for the sum of all vectors, then greedy steps."""

    search: NewtonSearchState
    positions: Position
    """Draws of the Gaussian at the mode, once it is found."""
    total: jax.Array
    """L (S,)."""
    has_total: jax.Array
    greedy: GreedyState
    done: jax.Array


class HilbertInfo(NamedTuple):
    """What one step reports; NaN where it does not apply."""

    newton_decrement: jax.Array
    relative_error: jax.Array
    """|L - approximation| / |L| with the best common factor of all weights."""
    kl_estimate: jax.Array
    """Half the variance, over the projections, of what the chosen rows leave of the log-likelihood."""
    num_chosen: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


def unit(vector: jax.Array) -> jax.Array:
    """The vector scaled to norm one; zero stays zero."""
    norm = jnp.linalg.norm(vector)
    return jnp.where(norm > 0, vector / jnp.where(norm > 0, norm, 1.0), 0.0)


def residual(target: jax.Array, approximation: jax.Array) -> jax.Array:
    """What of the unit vector ``target`` is orthogonal to the approximation."""
    return target - (target @ approximation) * approximation


def alignment(vectors: jax.Array, target: jax.Array, approximation: jax.Array) -> jax.Array:
    """Cosines (B,) between the geodesic from the approximation to the target and those to each row's vector (S, B)."""
    norms = jnp.linalg.norm(vectors, axis=0)
    lengths = jnp.where(norms > 0, norms, 1.0)
    across = unit(residual(target, approximation)) @ vectors / lengths
    squared_sine = 1.0 - (approximation @ vectors / lengths) ** 2
    is_useful = (norms > 0) & (squared_sine > PARALLEL)
    return jnp.where(is_useful, across / jnp.sqrt(jnp.where(is_useful, squared_sine, 1.0)), -jnp.inf)


def geodesic_step(target: jax.Array, approximation: jax.Array, direction: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Coefficients of the approximation and of a unit direction that come closest to the target, with norm one."""
    to_direction, to_here, between = target @ direction, target @ approximation, direction @ approximation
    gain, keep = to_direction - to_here * between, to_here - to_direction * between
    share = jnp.clip(gain / (gain + keep), 0.0, 1.0)
    length = jnp.linalg.norm((1.0 - share) * approximation + share * direction)
    return (1.0 - share) / length, share / length


@pytree
@dataclass(frozen=True)
class Hilbert(ComparesRows):
    """Choose rows greedily so that their weighted log-likelihoods add up to those of all rows.

    Args:
        kernel: samples the coreset posterior. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot.
        num_projections: S, draws of the Gaussian at the mode that the log-likelihoods are compared at. At most S rows
            get a weight in general, so take more than rows in the coreset.
        num_iterations: most greedy steps, each at S passes over the data; a step may choose a row again.
        tolerance: stop when the relative error on the projections is below this.
        max_iterations: most Newton steps in the search for the mode.
    """

    kernel: Kernel | None = None
    num_projections: int = static(default=200)
    num_iterations: int = 1_000
    tolerance: float = 1e-6
    max_iterations: int = 200

    name = "hilbert"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.num_iterations, int):
            require_count("num_iterations", self.num_iterations, at_least=1, fix="Pass at least the coreset size.")
        require_positive("tolerance", self.tolerance)

    @property
    def max_steps(self) -> int:
        return self.max_iterations + 1 + self.num_iterations

    def init(self, key: Key, problem: Problem) -> HilbertState:
        del key
        empty = jnp.zeros((problem.coreset_size, self.num_projections), problem.initial_weights.dtype)
        none = jnp.zeros((), jnp.int32)
        return HilbertState(
            search=self.search.init(problem),
            positions=self.repeated_start(problem),
            total=empty[0],
            has_total=jnp.array(False),
            greedy=GreedyState(empty[0], jnp.full(problem.coreset_size, -1, jnp.int32), empty, empty[:, 0], none, none),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: HilbertState, problem: Problem) -> tuple[HilbertState, HilbertInfo]:
        stage = state.search.has_converged.astype(jnp.int32) + state.has_total
        stepped: tuple[HilbertState, HilbertInfo] = jax.lax.switch(
            stage,
            [
                lambda: self._search_step(state, problem),
                lambda: self._sum_all(key, state, problem),
                lambda: self._choose(state, problem),
            ],
        )
        return stepped

    def finish(self, state: HilbertState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        if not state.has_total:
            raise RunError(f"{self.name}: stopped before any row was chosen. Let training run longer.")
        count = int(state.greedy.num_chosen)
        vectors, total = np.asarray(state.greedy.vectors)[:count], np.asarray(state.total)
        start = np.asarray(state.greedy.coefficients)[:count]
        coreset = padded(
            np.asarray(state.greedy.indices)[:count], best_weights(vectors, total, start), problem.coreset_size
        )
        return sample_coreset(problem, coreset, state.positions, kernel or self.moving_kernel, num_chains)

    def describe_rows(self, info: HilbertInfo) -> str:
        return f"{info.num_chosen[-1]} rows, relative error {info.relative_error[-1]:.2g}"

    def _search_step(self, state: HilbertState, problem: Problem) -> tuple[HilbertState, HilbertInfo]:
        search, info = self.search.step(state.search, problem)
        nothing = jnp.full_like(info.newton_decrement, jnp.nan)
        return state._replace(search=search), HilbertInfo(
            info.newton_decrement, nothing, nothing, state.greedy.num_chosen, info.num_evaluations, info.status
        )

    def _sum_all(self, key: Key, state: HilbertState, problem: Problem) -> tuple[HilbertState, HilbertInfo]:
        """Draw the positions of the projections and sum the vectors of all rows."""
        positions = draws_at_mode(key, state.search, problem, self.num_projections)

        def sum_of_block(batch: Batch) -> jax.Array:
            return jnp.sum(row_vectors(problem.model, positions, batch), axis=1)

        total = problem.data.sum_over_rows(sum_of_block)
        status = jnp.where(jnp.all(jnp.isfinite(total)), Status.OK.value, Status.PROJECTION_NOT_FINITE.value)
        summed = state._replace(positions=positions, total=total, has_total=jnp.array(True))
        return summed, self._info(summed, jnp.ones_like(total[0]), problem.data.size, status)

    def _choose(self, state: HilbertState, problem: Problem) -> tuple[HilbertState, HilbertInfo]:
        """One greedy step over all rows."""
        greedy, target = state.greedy, unit(state.total)
        here = greedy.approximation

        def scores(batch: Batch) -> jax.Array:
            return alignment(row_vectors(problem.model, state.positions, batch), target, here)

        score, index = problem.data.argmax_over_rows(scores)
        vector = row_vectors(problem.model, state.positions, problem.data.take(index[None]))[:, 0]
        added = _add_row(greedy, target, index.astype(jnp.int32), vector)
        can_improve = score > 0
        greedy = jax.tree.map(lambda new, old: jnp.where(can_improve, new, old), added, greedy)
        greedy = greedy._replace(num_steps=state.greedy.num_steps + 1)
        error = jnp.linalg.norm(residual(target, greedy.approximation))
        is_full = greedy.num_chosen >= problem.coreset_size
        is_over = ~can_improve | is_full | (error < self.tolerance) | (greedy.num_steps >= self.num_iterations)
        moved = state._replace(greedy=greedy, done=is_over)
        return moved, self._info(moved, error, problem.data.size + 1, jnp.zeros((), jnp.int32))

    def _info(self, state: HilbertState, error: jax.Array, num_rows: int, status: jax.Array) -> HilbertInfo:
        return HilbertInfo(
            newton_decrement=jnp.full_like(error, jnp.nan),
            relative_error=error,
            kl_estimate=0.5 * error**2 * jnp.sum(state.total**2),
            num_chosen=state.greedy.num_chosen,
            num_evaluations=jnp.asarray(self.num_projections * num_rows, jnp.int64),
            status=status.astype(jnp.int32),
        )


def _add_row(greedy: GreedyState, target: jax.Array, index: jax.Array, vector: jax.Array) -> GreedyState:
    """Move towards a row; a row chosen before keeps its slot."""
    direction = unit(vector)
    keep, add = geodesic_step(target, greedy.approximation, direction)
    is_known = greedy.indices == index
    slot = jnp.where(jnp.any(is_known), jnp.argmax(is_known), greedy.num_chosen)
    return greedy._replace(
        approximation=unit(keep * greedy.approximation + add * direction),
        indices=greedy.indices.at[slot].set(index),
        vectors=greedy.vectors.at[slot].set(vector),
        coefficients=(keep * greedy.coefficients).at[slot].add(add),
        num_chosen=jnp.maximum(greedy.num_chosen, slot.astype(jnp.int32) + 1),
    )


def best_weights(vectors: np.ndarray, total: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Weights w >= 0 that bring the sum of w_m v_m closest to the total, for chosen vectors (M, S).

    If non-negative least squares do not converge, the greedy coefficients with the best common factor.
    """
    from scipy.optimize import nnls  # noqa: PLC0415 - a tenth of a second that only this method needs

    if len(vectors) == 0:
        return np.zeros(0)
    norms = np.linalg.norm(vectors, axis=1)
    units = vectors / norms[:, None]
    try:
        result: np.ndarray = nnls(units.T, total)[0] / norms
        return result
    except RuntimeError:
        made = coefficients @ units
        scaled: np.ndarray = coefficients * max(made @ total, 0.0) / (made @ made) / norms
        return scaled
