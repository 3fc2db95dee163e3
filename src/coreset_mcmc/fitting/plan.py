"""Which rows a coreset starts from, and how a problem is going to be trained and sampled."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.trees import first_position
from coreset_mcmc.core.types import Key
from coreset_mcmc.data.selection import SelectedRows, Uniform
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.fitting.pilot import run_pilot
from coreset_mcmc.fitting.reading import Reading
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.choice import kernel_for_discrete, kernel_for_structure
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.contract import Method, check_needs
from coreset_mcmc.methods.registry import methods_that_work
from coreset_mcmc.posterior.problem import Problem

NO_ROWS = SelectedRows(np.zeros(0, np.int64), np.zeros(0))
"""For methods that have no coreset."""


class Plan(NamedTuple):
    """How a problem is going to be trained and sampled."""

    problem: Problem
    method: Method
    sampling_kernel: Kernel | None
    """The kernel that samples instead of the method's own."""
    pilot: Cost


def select(request: Request, reading: Reading) -> SelectedRows:
    """The rows that training starts from: by default uniform ones, of those that are in memory anyway."""
    if not reading.method.uses_coreset_rows:
        return NO_ROWS
    assert request.coreset_size != "auto", "resolved before"
    count = request.coreset_size
    if count is None and not request.names_rows:
        count = min(reading.method.default_rows(reading.model, first_position(reading.positions)), reading.rows.size)
    if count is not None:
        require_count("coreset_size", count, at_least=1, fix="Pass how many rows the coreset should have, e.g. 500.")
    generator, size = np.random.default_rng(request.random_seed), reading.rows.size
    resident = reading.rows.resident.indices
    if request.selection is None and count is not None and count <= len(resident):
        return SelectedRows(
            resident[generator.choice(len(resident), count, replace=False)], np.full(count, size / count)
        )
    rule = request.selection or Uniform()
    require(
        reading.batch is not None or not rule.looks_at_rows,
        "selection",
        got=f"{type(rule).__name__}, which looks at all rows at once, and rows that are not in memory",
        expected="a rule that does not look, such as cm.selection.Uniform()",
        fix="Leave selection out: rows are then chosen by how much they matter, rare outcomes included.",
    )
    return rule.select(generator, reading.batch, size, count)


def plan(
    problem: Problem, method: Method, kernel: Kernel | None, key: Key, *, keeps_rows: bool, progressbar: bool
) -> Plan:
    """Check that the method can work, and find a kernel for a method that wants one and was given none.

    ``kernel`` samples in place of the method's own; ``keeps_rows``: the rows of the problem are the user's choice.
    """
    check_needs(method.name, method.needs, problem, methods_that_work(problem.model, problem.position))
    method = method.adapted(problem, keeps_rows=keeps_rows)
    if method.lacks_kernel and kernel is None and (made_for_it := kernel_for_structure(problem.model)) is not None:
        method = method.with_kernel(made_for_it)
    if method.lacks_kernel and method.needs_pilot and kernel is None:
        by_steps = kernel_for_discrete(problem.position)
        method = method if by_steps is None else method.with_kernel(by_steps)
    method.check(problem)
    if kernel is not None or not (method.lacks_kernel and method.needs_pilot):
        return Plan(problem, method, kernel, Cost.of())
    pilot = run_pilot(problem, key, progressbar=progressbar)
    shaped = HitAndRunSlice(scale=pilot.scale)
    return Plan(
        replace(problem, initial_positions=pilot.positions),
        method.with_kernel(shaped),
        replace(shaped, num_directions=pilot.scale.shape[0]),
        Cost.of(*pilot.rounds),
    )
