"""The programs of a training run, compiled before they are needed, in the order of need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.compilation import compiler
from coreset_mcmc.core.randomness import key_of
from coreset_mcmc.core.trees import dimension
from coreset_mcmc.data.task import trace_for_each_row, trace_summed
from coreset_mcmc.methods.least_squares.equations import trace_measure
from coreset_mcmc.methods.least_squares.rounds import Rounds
from coreset_mcmc.methods.least_squares.scores import num_influence_draws, num_remainder_draws
from coreset_mcmc.methods.least_squares.start import ModeStart
from coreset_mcmc.methods.least_squares.state import Phase
from coreset_mcmc.posterior.at_positions import sums_task
from coreset_mcmc.posterior.by_passes import flat_position, posterior_of
from coreset_mcmc.posterior.gaussian_term import no_term
from coreset_mcmc.posterior.problem import Problem

Ahead = tuple[int | None, Callable[[], None]]
"""The phase that needs a program, and what compiles it."""


def programs_ahead(method: Any, start: ModeStart, rounds: Rounds, problem: Problem) -> Iterator[Ahead]:
    """Each is traced here, where the model's functions may be called, and compiled wherever the result is called."""
    if not method.starts_hot(problem):
        return
    rows, flat = problem.passes, flat_position(problem.position)
    block_rows, padded = rows.layout.block_rows, rows.padded_types
    posterior = posterior_of(problem)
    derivatives = trace_summed(posterior.row_derivatives, block_rows, padded, (flat,))
    yield method.first_phase(problem), compiler(derivatives)
    yield method.first_phase(problem), compiler(posterior.trace_with_prior(flat, derivatives.out_info))
    size, scores = problem.data.size, start.scores_task(problem)
    if scores.is_needed:
        draws, displacements = (
            np.zeros((count, flat.size)) for count in (num_influence_draws(size), num_remainder_draws(size))
        )
        traced = trace_for_each_row(scores, block_rows, padded, (draws, flat, displacements))
        yield Phase.SCORES, compiler(traced)
    yield from _of_rounds(method, start, rounds, problem)


def _of_rounds(method: Any, start: ModeStart, rounds: Rounds, problem: Problem) -> Iterator[Ahead]:
    def like(leaf: Any, count: int) -> Any:
        return jax.ShapeDtypeStruct((count, *leaf.shape[1:]), leaf.dtype)

    window = jax.tree.map(lambda leaf: like(leaf, rounds.num_draws), problem.initial_positions)
    taylor = start.no_taylor(problem) if method.samples_rows(problem) else None
    num_coordinates = dimension(problem.position)
    centre = np.zeros(num_coordinates) if start.gaussian_term else None
    yield Phase.ROUNDS, compiler(trace_measure(problem.model, taylor, centre, window, problem.roomy(problem.rows)))
    positions = jax.tree.map(lambda leaf: np.asarray(leaf)[: rounds.num_chains], problem.initial_positions)
    target, scale = problem.target(np.zeros(problem.coreset_size)), np.eye(num_coordinates)
    if start.gaussian_term:
        target = replace(target, term=no_term(num_coordinates))
    if not rounds.draws_in_python(problem):
        yield Phase.ROUNDS, rounds.drawing(Phase.ROUNDS).ahead(key_of(0), target, positions, scale)
    sums = sums_task(problem.model, jax.tree.map(lambda leaf: np.asarray(leaf)[:1], positions), problem.position)
    program: Any = sums.program
    layout = problem.passes.layout
    traced = trace_summed(program.function, layout.block_rows, problem.passes.padded_types, sums.arguments)
    yield None if taylor is not None else Phase.ROUNDS, compiler(traced)
