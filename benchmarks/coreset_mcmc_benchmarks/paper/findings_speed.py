"""Findings about time: training, and effective draws per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coreset_mcmc_benchmarks.paper.cell import number
from coreset_mcmc_benchmarks.paper.finding import (
    ALL_ROWS,
    CONTINUOUS,
    LARGE,
    PROBLEMS,
    PUBLISHED_MINIBATCHES,
    SUBSAMPLING,
    Finding,
    Judged,
    Tables,
)
from coreset_mcmc_benchmarks.paper.reasons import FACTOR
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

EFFICIENCY = "ess_per_second"
BEST = ("sghmc-cv-best",)
WITH_CHAINS = (ALL_ROWS, PUBLISHED_MINIBATCHES, "quasi-newton", "uniform")


def _takes_longer(method: str, names: Sequence[str]) -> Callable[[Tables], Judged]:
    def judge(tables: Tables) -> Judged:
        ratios = tables.ratios(names, method, ALL_ROWS, "training_seconds")
        numbers = tables.beside(names, (method, ALL_ROWS), "training_seconds")
        return Judged(
            f"seconds at M = {LARGE}, beside Coreset MCMC: {numbers}",
            float(np.median(ratios)) >= 2.0 if ratios else None,
        )

    return judge


def _same_work(method: str, names: Sequence[str]) -> Callable[[Tables], str]:
    def reason(tables: Tables) -> str:
        numbers = tables.beside(names, (method, ALL_ROWS), "evaluations")
        return f"Log-likelihoods of single rows in the whole run, beside Coreset MCMC: {numbers}"

    return reason


def _quasi_newton_searches_for_nothing(tables: Tables) -> str:
    return (
        "on the same draws a trial of the line search needs no log-likelihood; the published one evaluates all of them "
        f"again. {_same_work('quasi-newton', PROBLEMS)(tables)}"
    )


def _efficiencies(tables: Tables, methods: Sequence[str], name: str) -> dict[str, float]:
    found = {CONTESTANTS[method].title: tables.median(method, name, LARGE, EFFICIENCY) for method in methods}
    return {title: value for title, value in found.items() if not np.isnan(value)}


def _are_similar(tables: Tables) -> Judged:
    told, wins = [], []
    for name in PROBLEMS:
        found = _efficiencies(tables, WITH_CHAINS, name)
        if len(found) > 1:
            least, most = min(found, key=lambda one: found[one]), max(found, key=lambda one: found[one])
            told.append(f"{name} {number(found[least])} ({least}) to {number(found[most])} ({most})")
            wins.append(found[most] <= 10.0 * found[least])
    return Judged(f"per second at M = {LARGE}: {', '.join(told)}", all(wins) if wins else None)


def _beats_friction(tables: Tables) -> Judged:
    ratios = tables.ratios(CONTINUOUS, ALL_ROWS, "sghmc-cv", EFFICIENCY)
    return Judged(
        f"per second, Coreset MCMC and SGHMC-CV: {tables.beside(CONTINUOUS, (ALL_ROWS, 'sghmc-cv'), EFFICIENCY)}",
        float(np.median(ratios)) >= 100.0 / FACTOR if ratios else None,
    )


def _friction_at_its_best(tables: Tables) -> str:
    return f"SGHMC-CV at its best, with steps from the curvature: {tables.beside(CONTINUOUS, BEST, EFFICIENCY)}"


def _beats_subsampling(tables: Tables) -> Judged:
    told, wins = [], []
    for name in PROBLEMS:
        own = _efficiencies(tables, (ALL_ROWS, PUBLISHED_MINIBATCHES), name)
        others = _efficiencies(tables, SUBSAMPLING, name)
        if own and others:
            wins.append(min(own.values()) > max(others.values()))
            told.append(f"{name} {number(min(own.values()))} or more against {number(max(others.values()))} or less")
    return Judged(f"per second: {', '.join(told)}", all(wins) if wins else None)


SPEED = (
    Finding(
        "QNC takes 2 to 10 times longer to train",
        "at least twice the seconds of Coreset MCMC, in the middle of the problems",
        _takes_longer("quasi-newton", PROBLEMS),
        _quasi_newton_searches_for_nothing,
    ),
    Finding(
        "SHF takes 2 to 10 times longer to train",
        "the same",
        _takes_longer("sparse-hamiltonian-flow", CONTINUOUS),
        _same_work("sparse-hamiltonian-flow", CONTINUOUS),
    ),
    Finding(
        "All coreset methods with Markov chains have a similar number of effective draws per second",
        "largest and smallest differ by at most a factor of ten on each problem",
        _are_similar,
    ),
    Finding(
        "Coreset MCMC has about two orders of magnitude more of them than SGHMC-CV",
        f"at least {100.0 / FACTOR:.0f} times as many, in the middle of the problems",
        _beats_friction,
        _friction_at_its_best,
    ),
    Finding(
        "Coreset MCMC has uniformly more of them than subsampling MCMC",
        "the slower variant more than any of the four, on every problem",
        _beats_subsampling,
    ),
)
