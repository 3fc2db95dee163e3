"""What one run of the paper's experiments is going to be: arguments of ``fit``, and where its settings come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import Case

ORACLE, PUBLISHED, UNTUNED, BEST = "oracle-tuned", "as published", "untuned", "at its best"


@dataclass(frozen=True)
class Plan:
    """Arguments of ``fit`` for one run, and where its settings come from."""

    label: str
    arguments: dict[str, Any]
    seeds: tuple[int, ...] = ()
    """Seeds of several attempts, of which that with the smallest estimated KL counts; by default that of the job."""


@dataclass(frozen=True)
class Contestant:
    """A method as it enters the comparison."""

    title: str
    plan: Callable[[Case, Budget, int, int], Plan]
    """From the case, the budget, M and the seed."""
    has_coreset: bool = True
    needs_gradient: bool = False
    best_of: str = ""
    """The contestant of which this one is the row "at its best"."""
    is_extra: bool = False
    """Whether it is one more row of another contestant."""


def two_chains(case: Case, budget: Budget, coreset_size: int, method: Any, **more: Any) -> dict[str, Any]:
    """Both training chains go on after training; every draw is kept."""
    return {
        "method": method, "coreset_size": coreset_size, "chains": 2, "draws": budget.kept // 2, "tune": 0,
        "initvals": case.start, "selection": case.selection, **more,
    }  # fmt: skip


def one_chain(case: Case, budget: Budget, method: Any, **more: Any) -> dict[str, Any]:
    """Twice as many steps as draws; the first half is discarded."""
    return {
        "method": method, "chains": 1, "draws": budget.kept, "tune": budget.kept, "initvals": case.start, **more,
    }  # fmt: skip
