"""Findings about how near the approximations are: sections 4.1 and 4.2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coreset_mcmc_benchmarks.paper.authors import MEAN_KL
from coreset_mcmc_benchmarks.paper.cell import NOT_RUN, number, values_of
from coreset_mcmc_benchmarks.paper.finding import (
    ALL_ROWS,
    CONTINUOUS,
    LARGE,
    MINIBATCHES,
    MOST,
    PROBLEMS,
    PUBLISHED_MINIBATCHES,
    SMALL,
    SUBSAMPLING,
    Finding,
    Judged,
    Tables,
    put_back,
)
from coreset_mcmc_benchmarks.paper.plan import ORACLE, PUBLISHED
from coreset_mcmc_benchmarks.paper.reasons import FACTOR, FEW_RUNS, difference
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

FLOW = "sparse-hamiltonian-flow"
NUM_STEPS = 20_000
"""Of the subsampling methods, the discarded half included."""
UNRELIABLE = 100.0
"""Ratio of the largest to the smallest run of a cell."""


def _as_authors(method: str) -> Callable[[Tables], Judged]:
    def judge(tables: Tables) -> Judged:
        near: list[str] = []
        spread: list[str] = []
        far: list[str] = []
        for experiment, size in tables.cells(method):
            if len(values_of(tables.runs, method, experiment, size)) < FEW_RUNS:
                continue
            is_mean = (experiment, method) != ("sparse", ALL_ROWS)
            authors = MEAN_KL[experiment][method][size]
            told = difference(tables.runs, method, experiment, size, authors, is_mean=is_mean)
            place = near if not told.is_far else spread if told.is_spread else far
            place.append(f"{experiment} {size}")
        count = len(near) + len(spread) + len(far)
        numbers = (
            f"of {count} cells {len(near)} within the factor, {len(spread)} with runs on both sides of it, {len(far)} "
            f"differ{': ' if far else ''}{', '.join(far)}"
        )
        return Judged(numbers, len(near) + len(spread) >= MOST * count if count else None)

    return judge


def _all_rows_are_better(tables: Tables) -> Judged:
    cells = tables.cells(ALL_ROWS, PUBLISHED_MINIBATCHES)
    better = [cell for cell in cells if tables.median(ALL_ROWS, *cell) < tables.median(PUBLISHED_MINIBATCHES, *cell)]
    numbers = tables.beside(PROBLEMS, (ALL_ROWS, PUBLISHED_MINIBATCHES))
    return Judged(
        f"in {len(better)} of {len(cells)} cells; M = {LARGE}: {numbers}",
        len(better) >= MOST * len(cells) if cells else None,
    )


def _minibatch_bias(tables: Tables) -> str:
    numbers = tables.beside(PROBLEMS, (PUBLISHED_MINIBATCHES, MINIBATCHES))
    return f"the published scheme always takes the coreset rows, which biases it; with and without: {numbers}"


def _ratios_of_uniform(tables: Tables) -> dict[tuple[str, int], float]:
    """To Coreset MCMC, cell by cell."""
    return {
        cell: tables.median("uniform", *cell) / tables.median(ALL_ROWS, *cell)
        for cell in tables.cells("uniform", ALL_ROWS)
    }


def _uniform_is_worse(tables: Tables) -> Judged:
    ratios = _ratios_of_uniform(tables)
    if not ratios:
        return Judged(NOT_RUN, None)
    num_worse = sum(ratio >= 10.0 for ratio in ratios.values())
    smallest, largest = min(ratios.values()), max(ratios.values())
    return Judged(
        f"in {num_worse} of {len(ratios)} cells, {number(smallest)} to {number(largest)} times as large; "
        f"M = {LARGE}, Unif and Coreset MCMC: {tables.beside(PROBLEMS, ('uniform', ALL_ROWS))}",
        num_worse >= MOST * len(ratios),
    )


def _where_uniform_is_not_worse(tables: Tables) -> str:
    cells = [cell for cell, ratio in _ratios_of_uniform(tables).items() if ratio < 10.0]
    listed = ", ".join(f"{name} {size}: {number(tables.median(ALL_ROWS, name, size))}" for name, size in cells)
    return f"where it is not, Coreset MCMC has itself, {listed}" if cells else ""


def _quasi_newton(names: Sequence[str], holds: Callable[[float], bool]) -> Callable[[Tables], Judged]:
    def judge(tables: Tables) -> Judged:
        ratios = tables.ratios(names, "quasi-newton", ALL_ROWS)
        numbers = f"QNC and Coreset MCMC: {tables.beside(names, ('quasi-newton', ALL_ROWS))}"
        return Judged(numbers, all(map(holds, ratios)) if len(ratios) == len(names) else None)

    return judge


def _quasi_newton_is_unreliable(tables: Tables) -> Judged:
    spreads = {}
    for name, size in tables.cells("quasi-newton"):
        values = values_of(tables.runs, "quasi-newton", name, size)
        if len(values) >= FEW_RUNS:
            spreads[f"{name} {size}"] = float(values.max() / values.min())
    large = {name: spread for name, spread in spreads.items() if spread > UNRELIABLE}
    listed = ", ".join(f"{name} {number(spread)}" for name, spread in large.items())
    return Judged(
        f"{len(large)} of {len(spreads)} cells{': largest over smallest ' if large else ''}{listed}",
        bool(large) if spreads else None,
    )


def _flow_does_not_improve(tables: Tables) -> Judged:
    found = {name: (tables.median(FLOW, name, SMALL), tables.median(FLOW, name)) for name in CONTINUOUS}
    known = [
        pair
        for name, pair in found.items()
        if min(len(values_of(tables.runs, FLOW, name, size)) for size in (SMALL, LARGE)) >= FEW_RUNS
    ]
    numbers = ", ".join(f"{name} {number(small)} and {number(large)}" for name, (small, large) in found.items())
    agrees = all(large > small / FACTOR for small, large in known) if known else None
    return Judged(f"M = {SMALL} and M = {LARGE}: {numbers}", agrees)


def _flow_at_its_best(tables: Tables) -> str:
    return (
        f"at its best, which starts at the mode, with steps from there and gradients of all rows, M = {LARGE}: "
        f"{tables.beside(CONTINUOUS, (f'{FLOW}-best',))}"
    )


def _published_rivals(tables: Tables, name: str) -> dict[str, float]:
    """Medians of what the paper compares, without SGHMC-CV."""
    found = {}
    for method in CONTESTANTS:
        labels = tables.runs[tables.runs["method"] == method]["label"]
        if method != "sghmc-cv" and len(labels) and labels.iloc[0] in (ORACLE, PUBLISHED):
            median = tables.median(method, name)
            if not np.isnan(median):
                found[method] = median
    return found


def _friction_is_best(tables: Tables) -> Judged:
    told, wins = [], []
    for name in ("linear", "logistic"):
        own, rivals = tables.median("sghmc-cv", name), _published_rivals(tables, name)
        if not np.isnan(own) and rivals:
            best = min(rivals, key=lambda rival: rivals[rival])
            wins.append(own <= FACTOR * rivals[best])
            told.append(f"{name} {number(own)}, the best other {CONTESTANTS[best].title} with {number(rivals[best])}")
    return Judged("; ".join(told) or NOT_RUN, all(wins) if wins else None)


def _coreset_is_competitive(tables: Tables) -> Judged:
    told, wins = [], []
    for name in ("linear", "logistic"):
        own, rivals = tables.median(ALL_ROWS, name), _published_rivals(tables, name)
        others = {method: value for method, value in rivals.items() if method in SUBSAMPLING}
        if not np.isnan(own) and others:
            wins.append(own <= FACTOR * min(others.values()))
            listed = ", ".join(f"{CONTESTANTS[method].title} {number(value)}" for method, value in others.items())
            told.append(f"{name} {number(own)} against {listed}")
    return Judged("; ".join(told) or NOT_RUN, all(wins) if wins else None)


def _confidence_is_exact(tables: Tables) -> str:
    """Each of its steps evaluates the rows it sees at two positions."""
    runs = tables.runs[tables.runs["method"] == "confidence-mh"]
    told = []
    for name in CONTINUOUS:
        mine = runs[runs["experiment"] == name]
        if len(mine):
            share = mine["evaluations"] / (2.0 * mine["rows"] * NUM_STEPS)
            told.append(f"{name} {100.0 * float(share.median()):.3g} %")
    forced = put_back(tables, "confidence-mh", CONTINUOUS, None)
    return f"Confidence looks at nearly all rows ({', '.join(told)}) and so is exact{'; ' + forced if forced else ''}"


def _mode_is_missed(tables: Tables) -> Judged:
    methods = ("sgld-cv", "sghmc-cv")
    found = {method: tables.median(method, "poisson") for method in methods}
    ratios = [ratio for method in methods for ratio in tables.ratios(["poisson"], method, ALL_ROWS)]
    numbers = ", ".join(f"{CONTESTANTS[method].title} {number(value)}" for method, value in found.items())
    return Judged(
        f"{numbers}; Coreset MCMC {number(tables.median(ALL_ROWS, 'poisson'))}",
        all(ratio > 10.0 for ratio in ratios) if ratios else None,
    )


def _mode_found(tables: Tables) -> str:
    told = []
    for method in ("sgld-cv", "sghmc-cv"):
        medians = [number(tables.median(f"{method}-{row}", "poisson")) for row in ("mode", "best")]
        told.append(f"{CONTESTANTS[method].title} {' and '.join(medians)}")
    return (
        "the published search ends when updates are small beside their coordinates; with one that goes on, and at "
        f"their best: {', '.join(told)}"
    )


def _sparse_resembles(tables: Tables) -> Judged:
    methods = ("uniform", ALL_ROWS, "quasi-newton")
    uniform, own, quasi = (tables.median(method, "sparse") for method in methods)
    distance = tables.median(ALL_ROWS, "sparse", LARGE, "js")
    return Judged(
        f"M = {LARGE}: Unif {number(uniform)}, Coreset MCMC {number(own)}, QNC {number(quasi)}; Jensen-Shannon "
        f"distance of the patterns of Coreset MCMC {number(distance)}",
        None if np.isnan([uniform, own, quasi]).any() else uniform > max(own, quasi),
    )


QUALITY = (
    Finding(
        "Coreset MCMC with all rows: mean KL at the chosen step sizes",
        f"cells with {FEW_RUNS} runs or more: three quarters within a factor of {FACTOR:g}, or with runs on both sides",
        _as_authors(ALL_ROWS),
    ),
    Finding(
        "The same with minibatches",
        "the same, with the published scheme",
        _as_authors(PUBLISHED_MINIBATCHES),
    ),
    Finding(
        "All rows give generally better approximations than minibatches",
        "a smaller median in three quarters of the cells",
        _all_rows_are_better,
        _minibatch_bias,
    ),
    Finding(
        "Unif is an order of magnitude worse nearly uniformly across sizes",
        "ten times the KL of Coreset MCMC or more in three quarters of the cells",
        _uniform_is_worse,
        _where_uniform_is_not_worse,
    ),
    Finding(
        "QNC is competitive on linear and logistic regression",
        f"M = {LARGE}: at most ten times the KL of Coreset MCMC on both",
        _quasi_newton(("linear", "logistic"), lambda ratio: ratio <= 10.0),
        lambda tables: put_back(tables, "quasi-newton", ("linear", "logistic"), LARGE),
    ),
    Finding(
        "QNC is significantly worse on Poisson regression",
        f"M = {LARGE}: more than ten times the KL of Coreset MCMC",
        _quasi_newton(("poisson",), lambda ratio: ratio > 10.0),
        lambda tables: put_back(tables, "quasi-newton", ("poisson",), LARGE),
    ),
    Finding(
        "QNC is less reliable in general",
        f"runs of some cell differ by more than a factor of {UNRELIABLE:g}",
        _quasi_newton_is_unreliable,
    ),
    Finding(
        "SHF does not improve with the coreset size",
        f"KL at M = {LARGE} more than a third of that at M = {SMALL}, wherever both have {FEW_RUNS} runs or more",
        _flow_does_not_improve,
        _flow_at_its_best,
    ),
    Finding(
        "SGHMC-CV is the most accurate on linear and logistic regression",
        f"within a factor of {FACTOR:g} of the smallest KL as published, coresets at M = {LARGE}",
        _friction_is_best,
    ),
    Finding(
        "The other subsampling methods are no better than Coreset MCMC there",
        f"Coreset MCMC, M = {LARGE}, has at most {FACTOR:g} times the KL of the best of them",
        _coreset_is_competitive,
        _confidence_is_exact,
    ),
    Finding(
        "On Poisson regression the control variates do not find the mode, and quality suffers",
        "more than ten times the KL of Coreset MCMC",
        _mode_is_missed,
        _mode_found,
    ),
    Finding(
        "On sparse regression, too, Unif is worse than Coreset MCMC and QNC",
        f"the largest median of the three at M = {LARGE}",
        _sparse_resembles,
    ),
)
