"""The programs of a training run, compiled before they are needed, in the order of need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.trees import dimension
from coreset_mcmc.data.task import trace_for_each_row, trace_summed
from coreset_mcmc.methods.least_squares.equations import trace_measure, trace_solve
from coreset_mcmc.methods.least_squares.rounds import Rounds
from coreset_mcmc.methods.least_squares.scores import num_influence_draws, num_remainder_draws
from coreset_mcmc.methods.least_squares.start import ModeStart
from coreset_mcmc.methods.least_squares.state import Phase
from coreset_mcmc.posterior.by_passes import flat_position, posterior_of
from coreset_mcmc.posterior.problem import Problem


def programs_ahead(method: Any, start: ModeStart, rounds: Rounds, problem: Problem) -> Iterator[Callable[[], None]]:
    """Each is traced here, where the model's functions may be called, and compiled wherever the result is called."""
    if not method.starts_hot(problem):
        return
    flat = flat_position(problem.position)
    rows = problem.passes
    block_rows, padded = rows.layout.block_rows, rows.padded_types
    yield compiler(trace_summed(posterior_of(problem).row_derivatives, block_rows, padded, (flat,)))
    size, count = problem.data.size, dimension(problem.position)
    scores = start.scores_task(problem)
    if scores.with_influence or scores.with_remainder:
        arguments = (
            np.zeros((num_influence_draws(size), count)),
            flat,
            np.zeros((num_remainder_draws(size), count)),
        )
        yield compiler(trace_for_each_row(scores, block_rows, padded, arguments))
    num_draws = rounds.num_draws
    draws = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((num_draws, *leaf.shape[1:]), leaf.dtype), problem.initial_positions
    )
    taylor = start.no_taylor(problem) if method.samples_rows(problem) else None
    yield compiler(trace_measure(problem.model, taylor, draws, problem.rows))
    weights = np.zeros(problem.coreset_size)
    yield compiler(trace_solve(2 * num_draws, problem.coreset_size))
    positions = jax.tree.map(lambda leaf: np.asarray(leaf)[: rounds.num_chains], problem.initial_positions)
    drawing = rounds.drawing(Phase.ROUNDS)
    yield compiler(drawing.trace(jax.random.key(0), problem.target(weights), positions, np.eye(count)))


def compiler(traced: Any) -> Callable[[], None]:
    """Compiles what was traced."""

    @double_precision
    def compile_it() -> None:
        traced.lower().compile()

    return compile_it
