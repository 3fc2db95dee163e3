"""Draws of a coreset posterior whose log-likelihood is Python: no compiled program calls back for each evaluation.

A callback costs several times as much as the evaluation of a few hundred rows in NumPy, so the chains move in Python
(:mod:`coreset_mcmc.kernels.ellipses`). The first draws, which do not count, find out whether ellipses serve. Then each
draw is a move along an ellipse, every fourth with one along a line, which is at home where the target is of another
shape. If they do not serve, each draw takes as many lines as there are coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.randomness import fold_in, generator_of
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import first_position, flat_positions, num_positions, positions_of
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.core.watching import tell
from coreset_mcmc.kernels.ellipses import Move, Point, Shape, along_ellipse, along_line, together
from coreset_mcmc.methods.sampling import SamplesCoreset, SamplingProblem
from coreset_mcmc.models.host import HostFunction
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget

NUM_TUNING = 20
"""Draws of each chain in which ellipses are tried."""
LEAST_ACCEPTANCE = 0.25
"""Accepted moves along ellipses for each evaluation; with fewer, lines do the work."""
LINE_EVERY = 4
"""Draws by ellipses, one of which has a move along a line besides."""


FEW_ROWS = 4_096
"""Behind control variates, at most: evaluations are dear."""


def is_python(model: Model) -> bool:
    """Whether both densities are functions of NumPy arrays."""
    return isinstance(model.log_likelihood, HostFunction) and isinstance(model.log_prior, HostFunction)


def rows_behind_sums(model: Model, wanted: int | None) -> int | None:
    """How many rows stand behind control variates."""
    return wanted if wanted is None or not is_python(model) else min(wanted, FEW_ROWS)


class HostDensity:
    """The log-density of a coreset target in Python; the likelihood is not asked where the prior is zero."""

    def __init__(self, target: CoresetTarget, position: Position) -> None:
        weights = np.asarray(target.weights)
        kept = np.flatnonzero(weights)
        assert isinstance(target.model.log_prior, HostFunction)
        assert isinstance(target.model.log_likelihood, HostFunction)
        self._prior, self._likelihood = target.model.log_prior, target.model.log_likelihood
        self._rows = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], target.rows)
        self._weights, self._term, self._position = weights[kept], target.term, position

    def __call__(self, flat: np.ndarray) -> np.ndarray:
        """At flat positions (K, d): (K,), minus infinity in place of NaN and of plus infinity."""
        total = self._prior.many(positions_of(self._position, flat))
        possible = np.flatnonzero(np.isfinite(total))
        if len(possible) and len(self._weights):
            values = self._likelihood.many(positions_of(self._position, flat[possible]), self._rows)
            with np.errstate(invalid="ignore"):
                total[possible] += values @ self._weights
        if self._term is not None:
            total = total + self._term.at(flat)
        result: np.ndarray = np.where(total < np.inf, total, -np.inf)
        return result


class HostChains(NamedTuple):
    """Where the chains are, with a leading axis, and their log-densities (K,)."""

    position: Position
    log_density: np.ndarray


class HostInfo(NamedTuple):
    """One draw of each chain: the fields of :class:`~coreset_mcmc.methods.sampling.SamplingInfo`, as NumPy arrays."""

    position: Position
    log_density: np.ndarray
    acceptance_rate: np.ndarray
    diverging: np.ndarray
    num_steps: np.ndarray
    num_evaluations: np.ndarray
    status: np.ndarray


class HostDraws(NamedTuple):
    """Draws of all chains in one line, where the chains have ended, and evaluations of the log-density."""

    positions: Position
    ends: Position
    num_evaluations: int


class HostState(NamedTuple):
    """The chains, and how ellipses have served while they were tried."""

    chains: HostChains
    number: np.ndarray
    num_accepted: np.ndarray
    num_tried: np.ndarray
    done: np.ndarray


@pytree
@dataclass(frozen=True)
class HostSampling(SamplesCoreset):
    """Ellipses and lines, in Python.

    Args:
        centre: of the target (d,); unknown if it is not finite, and then there are no ellipses.
        scale: L (d, d), a factor of its covariance.
    """

    centre: Any
    scale: Any
    num_tuning: int = static(default=NUM_TUNING)

    on_host = True

    def init(self, key: Key, problem: SamplingProblem) -> HostState:
        del key
        positions = jax.tree.map(np.asarray, problem.initial_positions)
        density = HostDensity(problem.target, first_position(positions))
        chains = HostChains(positions, density(flat_positions(positions)))
        nothing = np.zeros((), np.int64)
        return HostState(chains, nothing, nothing, nothing, np.asarray(False))

    def blank_info(self, problem: SamplingProblem) -> HostInfo:
        positions = jax.tree.map(np.asarray, problem.initial_positions)
        count = num_positions(positions)
        return HostInfo(
            position=positions,
            log_density=np.zeros(count),
            acceptance_rate=np.zeros(count),
            diverging=np.zeros(count, bool),
            num_steps=np.zeros(count, np.int32),
            num_evaluations=np.zeros((), np.int64),
            status=np.zeros((), np.int32),
        )

    def step(self, key: Key, state: HostState, problem: SamplingProblem) -> tuple[HostState, HostInfo]:
        position = first_position(state.chains.position)
        density = HostDensity(problem.target, position)
        shape = Shape(np.asarray(self.centre), np.asarray(self.scale))
        flat = flat_positions(state.chains.position)
        generators = generator_of(key).spawn(len(flat))
        points = [Point(*pair) for pair in zip(flat, np.asarray(state.chains.log_density).tolist(), strict=True)]
        moves, tried = [], np.zeros(len(points), np.int64)
        if np.all(np.isfinite(shape.centre)):
            pairs = zip(generators, points, strict=True)
            moves.append(together([along_ellipse(generator, point, shape) for generator, point in pairs], density))
            points, tried = [move.point for move in moves[-1]], _evaluations(moves)
        for _ in range(self._num_lines(state, len(shape.scale))):
            pairs = zip(generators, points, strict=True)
            moves.append(together([along_line(generator, point, shape.scale) for generator, point in pairs], density))
            points = [move.point for move in moves[-1]]
        chains = HostChains(
            positions_of(position, np.stack([point.flat for point in points])),
            np.array([point.value for point in points]),
        )
        return self._advanced(state, chains, moves, tried), self._info(chains, moves, tried, problem)

    def _num_lines(self, state: HostState, num_coordinates: int) -> int:
        """One while ellipses are tried, few where they serve, as many as there are coordinates otherwise."""
        if state.num_tried == 0 and not np.all(np.isfinite(self.centre)):
            return num_coordinates
        if state.number < self.num_tuning:
            return 1
        serves = state.num_accepted > LEAST_ACCEPTANCE * state.num_tried
        return int(state.number % LINE_EVERY == 0) if serves else num_coordinates

    def _advanced(self, state: HostState, chains: HostChains, moves: list[list[Move]], tried: np.ndarray) -> HostState:
        is_tuning = state.number < self.num_tuning
        accepted = sum(move.found for move in moves[0]) if np.any(tried) else 0
        return HostState(
            chains,
            np.asarray(state.number + 1),
            np.asarray(state.num_accepted + is_tuning * accepted),
            np.asarray(state.num_tried + is_tuning * tried.sum()),
            state.done,
        )

    def _info(
        self, chains: HostChains, moves: list[list[Move]], tried: np.ndarray, problem: SamplingProblem
    ) -> HostInfo:
        counts = _evaluations(moves)
        is_lost = bool(np.any(chains.log_density == -np.inf))
        return HostInfo(
            position=chains.position,
            log_density=chains.log_density,
            acceptance_rate=np.where(tried > 0, 1.0 / np.maximum(tried, 1), 1.0),
            diverging=~np.all([[move.found for move in some] for some in moves], axis=0),
            num_steps=counts.astype(np.int32),
            num_evaluations=np.asarray(len(problem.target.weights) * counts.sum(), np.int64),
            status=np.asarray((Status.CHAIN_LOST if is_lost else Status.OK).value, np.int32),
        )


def _evaluations(moves: list[list[Move]]) -> np.ndarray:
    """Of each chain (K,)."""
    counts = np.array([[move.num_evaluations for move in some] for some in moves], np.int64)
    result: np.ndarray = counts.sum(axis=0)
    return result


def host_draws(
    key: Key, positions: Position, target: CoresetTarget, shape: Shape, num_steps: int, num_discarded: int
) -> HostDraws:
    """Draws of all chains, without the first of each, in which ellipses are tried.

    Whoever watches is told how far they are, and may end them.
    """
    sampler, problem = HostSampling(shape.centre, shape.scale, num_discarded), SamplingProblem(target, positions)
    state, infos = sampler.init(key, problem), []
    for number in range(num_steps):
        state, info = sampler.step(fold_in(key, number), state, problem)
        infos.append(info)
        tell("drawing from the coreset [draws]", number + 1, num_steps)
    kept = [info.position for info in infos[num_discarded:]]
    return HostDraws(
        positions=jax.tree.map(lambda *leaves: np.concatenate(leaves), *kept),
        ends=state.chains.position,
        num_evaluations=sum(int(info.num_steps.sum()) for info in infos),
    )
