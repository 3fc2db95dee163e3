"""Which peaks of a sample are modes of all rows, and how much mass each of them has.

A race: all peaks climb on more and more of the rows, by the program of the search for the mode that training needs
anyway, and share each pass. Between two samples those drop out that cannot matter any more: the difference of two sums
over N rows, known from n of them, has a standard error, and a mode that stays e^-12 below the best by six of these is
out. Where one mode dominates, the passes over all rows are those that its own search would have taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coreset_mcmc.core.status import Status
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.rows import rows_at
from coreset_mcmc.posterior.by_passes import FullPosterior
from coreset_mcmc.posterior.modes.found import SAME_MODE, Mode
from coreset_mcmc.posterior.modes.search import Peak, Peaks, evidence
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchState, Proposal, held, newton_decrement
from coreset_mcmc.posterior.second_order import Derivatives

SMALL_RACE = 8_192
"""Rows of the first race."""
NEGLIGIBLE, STANDARD_ERRORS = 12.0, 6.0
MOST_STEPS = 12
DESCRIPTION = "looking for modes"


class Runner(NamedTuple):
    """A peak on its way."""

    peak: Peak
    search: NewtonSearchState
    """Its derivatives are those of the whole density, parameters held or not."""
    has_ended: bool

    def evidence(self, is_held: np.ndarray) -> float:
        """Height and volume where the local quadratic has its peak; minus infinity if it has none."""
        at = held(self.search.derivatives, is_held)
        decrement = float(newton_decrement(at))
        if not np.isfinite(decrement):
            return -np.inf
        return evidence(float(at.value) + 0.5 * min(decrement, 10.0) ** 2, at.hessian, is_held)


class Race:
    """All peaks of a sample, on all rows in the end."""

    def __init__(self, posterior: FullPosterior, search: NewtonSearch, peaks: Peaks, sample_count: int) -> None:
        self.posterior, self.search, self.is_held = posterior, search, peaks.is_held
        self.runners = [Runner(peak, search.begin(peak.position), False) for peak in peaks.found]
        self.dropped: list[Peak] = []
        self.sample_count, self.num_evaluations = sample_count, 0

    def run(self) -> list[Mode]:
        """Modes of all rows, the most massive first."""
        rows = self.posterior.rows
        resident = rows.resident
        num_resident = len(resident.indices)
        self._drop(self.sample_count, [runner.peak.evidence for runner in self.runners])
        for count in (SMALL_RACE, num_resident):
            if count < rows.size and count <= num_resident and len(self.runners) > 1:
                places = np.linspace(0, num_resident - 1, count).astype(int)
                self._on(rows.weighted(rows_at(resident.rows, places), np.full(count, rows.size / count)))
                self._drop(count, [runner.evidence(self.is_held) for runner in self.runners])
                self.runners = [
                    runner._replace(search=self.search.begin(runner.search.position), has_ended=False)
                    for runner in self.runners
                ]
        self._on(rows)
        self.runners = [runner for runner in self.runners if runner.search.has_converged]
        self._drop(rows.size, [runner.evidence(self.is_held) for runner in self.runners])
        found = sorted((self._mode(runner) for runner in self.runners), key=lambda mode: -mode.evidence)
        lesser = [self._of(peak.position, -np.inf, peak.hessian, peak.is_users, None) for peak in self.dropped]
        return _distinct([*found, *lesser]) if found else []

    def _on(self, rows: Rows) -> None:
        """Steps of all runners together, until each has arrived or has failed."""
        posterior = replace(self.posterior, rows=rows)
        for _ in range(MOST_STEPS):
            going = [number for number, runner in enumerate(self.runners) if not runner.has_ended]
            if not going:
                return
            searches = [self._held(self.runners[number].search) for number in going]
            proposals = [self.search.propose(search) for search in searches]
            there = posterior.derivatives_at([proposal.position for proposal in proposals], DESCRIPTION)
            self.num_evaluations += len(going) * posterior.num_derivative_evaluations
            for number, search, proposal, found in zip(going, searches, proposals, there, strict=True):
                self.runners[number] = self._moved(self.runners[number], search, proposal, found)

    def _held(self, search: NewtonSearchState) -> NewtonSearchState:
        return search._replace(derivatives=held(search.derivatives, self.is_held)) if self.is_held.any() else search

    def _moved(self, runner: Runner, search: NewtonSearchState, proposal: Proposal, there: Derivatives) -> Runner:
        with np.errstate(all="ignore"):
            own = held(there, self.is_held) if self.is_held.any() else there
            moved, info = self.search.judge(search, proposal, own)
        is_there = np.array_equal(moved.position, proposal.position)
        known = there if is_there else runner.search.derivatives
        has_ended = bool(moved.has_converged) or int(info.status) != Status.OK.value
        return Runner(runner.peak, moved._replace(derivatives=known), has_ended)

    def _drop(self, count: int, evidences: list[float]) -> None:
        """Leave out those that cannot matter, as far as ``count`` rows can tell."""
        if len(self.runners) <= 1:
            return
        size, values = self.posterior.rows.size, np.array(evidences)
        best = int(np.argmax(values))
        kept = []
        for runner, own in zip(self.runners, values, strict=True):
            with np.errstate(invalid="ignore"):
                differences = runner.peak.log_likelihoods - self.runners[best].peak.log_likelihoods
            deviation = float(np.std(differences[: self.sample_count]))
            error = deviation * size * np.sqrt((1.0 / count) * max(1.0 - count / size, 0.0))
            lag = values[best] - own - (STANDARD_ERRORS * error if np.isfinite(error) else np.inf)
            if lag > NEGLIGIBLE:
                self.dropped.append(runner.peak)
            else:
                kept.append(runner)
        self.runners = kept

    def _mode(self, runner: Runner) -> Mode:
        search, own = runner.search, runner.evidence(self.is_held)
        is_whole = not self.is_held.any()
        return self._of(
            search.position, own, search.derivatives.hessian, runner.peak.is_users, search if is_whole else None
        )

    def _of(
        self, position: np.ndarray, own: float, hessian: np.ndarray, is_users: bool, search: NewtonSearchState | None
    ) -> Mode:
        free = ~self.is_held
        precision = np.eye(len(free))
        precision[np.ix_(free, free)] = -hessian[np.ix_(free, free)]
        return Mode(position, own, precision, is_users, search)


def _distinct(modes: list[Mode]) -> list[Mode]:
    """Peaks of a sample that lead to the same mode of all rows are one."""
    kept: list[Mode] = []
    for mode in modes:
        same = [number for number, known in enumerate(kept) if known.distances(mode.position[None])[0] < SAME_MODE]
        if not same:
            kept.append(mode)
        elif mode.is_users and not kept[same[0]].is_users:
            kept[same[0]] = kept[same[0]]._replace(is_users=True)
    return kept
