"""Look, climb, and look again from what was found: the peaks of a sample of rows.

Four climbs of all climbers together. In the first all but the user's starts see a handful of rows each. The second
begins at the peaks of a population of thousands of scored positions. The third sends some climbers to rows that the
best peak explains badly, others to mirror images of peaks; the fourth follows these, lines through the best peaks, and
another population between all that was found.

Parameters that no row reads, such as the scale of group effects, are held where the user starts them: a joint density
has spikes along them that are high and hold no mass.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.models.host import HostFunction
from coreset_mcmc.posterior.modes.proposals import (
    Spread,
    around,
    between,
    lines,
    peaks,
    peaks_on_lines,
    population,
    subsets,
)
from coreset_mcmc.posterior.modes.sample import BUFFER, NUM_ROWS, Climbed, Sample
from coreset_mcmc.posterior.modes.symmetry import (
    NUM_TRIALS,
    SignedPermutation,
    copies,
    is_float,
    proposed_maps,
    symmetries,
)

MOST_VALUES = 2**26
"""Numbers of rows that a scored population may touch."""
FEW_POSITIONS = 64
"""In the population of a function in Python, which is called for each."""
MOST_PEAKS = 12
"""That go on to be ranked."""
SAME_PEAK = 0.3
"""Standard deviations between two climbers that have reached the same peak."""
NUM_BEST = 3
"""Peaks through which lines are drawn and which are mirrored."""
MOST_LINES = 24
LARGEST_START = 4
"""Starts of the user that are climbed from."""
MOST_WAITING = 4
"""Climbers that may go on."""
LINE_OF_PRIOR = 10.0 ** np.linspace(-2.0, 6.0, 40)
FLAT_SCALE = 100.0
"""Of a parameter whose prior does not fall off, in units of its start."""


class Peak(NamedTuple):
    """A mode of the sample."""

    position: np.ndarray
    evidence: float
    """Height and Laplace volume, without constants."""
    hessian: np.ndarray
    log_likelihoods: np.ndarray
    """Of the rows of the sample."""
    is_users: bool
    """Whether a start of the user's leads there."""

    def distance(self, flat: np.ndarray) -> float:
        """Of another position, in standard deviations."""
        step = flat - self.position
        square = -float(step @ self.hessian @ step)
        return float(np.sqrt(square)) if square >= 0 else float("inf")


class Peaks(NamedTuple):
    """What a search has found on the sample."""

    found: list[Peak]
    """The most massive first, copies left out; empty for models that cannot be climbed, or have no peak."""
    is_held: np.ndarray
    """Marks (d,) parameters that were left alone."""
    symmetries: list[SignedPermutation]
    highest: np.ndarray
    """The highest position (d,) of the population, no climber among them."""
    num_starts: int
    """Positions that were looked at."""


def find_peaks(sample: Sample, starts: np.ndarray, seed: int, width: float = 1.0) -> Peaks:
    """Peaks of the sample from a population of starts; ``width`` multiplies the distances that are looked at."""
    return _Search(sample, starts, np.random.default_rng([seed, NUM_ROWS]), width).run()


class _Search:
    """One search; what it knows so far."""

    def __init__(self, sample: Sample, starts: np.ndarray, generator: np.random.Generator, width: float) -> None:
        self.sample, self.starts, self.generator, self.width = sample, starts, generator, width
        self.is_held = ~is_float(sample.position)
        self.found: list[Peak] = []
        self.waiting = starts[:0]
        """The highest climbers that have not arrived; they go on with the next climb."""
        self.num_starts = 0
        self.values = _row_values(sample)

    def run(self) -> Peaks:
        spread = self._spread_of_prior()
        if self.sample.num_climbers == 0:
            pool, heights = self._scored(self._population(spread, self.starts))
            return self._result([], pool[np.argmax(heights)])
        ends = self._first_climb(spread)
        pool, heights = self._scored(np.concatenate([ends, self._population(spread, ends)]))
        highest = pool[np.argmax(heights)]
        self._climb_on(self._chosen(pool, heights), num_users=min(len(self.starts), LARGEST_START))
        maps = proposed_maps(self.sample.position, self.is_held)
        same = self._symmetries(maps, pool, heights)
        if self.found:
            self._look_again(spread, ends, maps, same)
        return self._result(same, highest)

    def _result(self, same: list[SignedPermutation], highest: np.ndarray) -> Peaks:
        ranked = sorted(_without_copies(self.found, same), key=lambda peak: -peak.evidence)
        kept = [peak for number, peak in enumerate(ranked) if number < MOST_PEAKS or peak.is_users]
        return Peaks(kept, self.is_held, same, highest, self.num_starts)

    def _scored(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions with parameters held, and their heights."""
        flat = np.where(self.is_held, self.starts[0], flat)
        self.num_starts += len(flat)
        return flat, self._heights(flat)

    def _heights(self, flat: np.ndarray) -> np.ndarray:
        prior, likelihood = self.sample.heights(flat)
        total: np.ndarray = prior + likelihood
        return total

    def _population(self, spread: Spread, ends: np.ndarray) -> np.ndarray:
        per_position = NUM_ROWS * max(self.values.shape[1], 1)
        count = int(np.clip(MOST_VALUES // per_position, FEW_POSITIONS, 4 * BUFFER))
        if isinstance(self.sample.model.log_likelihood, HostFunction):
            count = FEW_POSITIONS
        drawn = population(self.generator, count - len(self.starts), self.starts, spread, ends, self.width)
        return np.concatenate([self.starts, drawn])

    def _away(self, start: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """A place near the start but at no saddle: there other parameters do not hide what rows read."""
        step = 0.1 * unit * self.generator.uniform(0.5, 1.0, len(start))
        return np.where(self.is_held, start, start + step)

    def _spread_of_prior(self) -> Spread:
        """Along each parameter from the first start: where the log-prior is highest, and where it falls by a half.

        A parameter along which no row of the sample changes its log-likelihood is read by none.
        """
        start = self.starts[0]
        unit = np.maximum(np.abs(start), 1.0)
        centre, scale = start.copy(), FLAT_SCALE * unit
        steps = np.concatenate([-LINE_OF_PRIOR[::-1], [0.0], LINE_OF_PRIOR])
        at_once = max(BUFFER // len(steps), 1)
        free = np.flatnonzero(~self.is_held)
        for first in range(0, len(free), at_once):
            places = free[first : first + at_once]
            points = np.repeat(np.repeat(self._away(start, unit)[None, None], len(places), axis=0), len(steps), axis=1)
            for number, place in enumerate(places):
                points[number, :, place] = start[place] + unit[place] * steps
            found = self.sample.heights(points.reshape(-1, len(start)))
            priors, likelihoods = (values.reshape(len(places), len(steps)) for values in found)
            for number, place in enumerate(places):
                self.is_held[place] = _is_constant(likelihoods[number])
                middle, half = _middle_and_half(steps, priors[number])
                if np.isfinite(half):
                    centre[place], scale[place] = start[place] + unit[place] * middle, unit[place] * half
        return Spread(centre, scale)

    def _first_climb(self, spread: Spread) -> np.ndarray:
        """Where climbers end that see a handful of rows each."""
        lanes = self.sample.num_climbers
        begins = between(self.generator, lanes, self.starts, 0.3 * np.minimum(around(self.starts, spread), 1.0))
        chances = np.where(self.sample.weights > 0, 1.0 / self.sample.count, 0.0)
        weights = subsets(self.generator, lanes, self.values, chances, len(self.is_held))
        return self._usable(self.sample.climb(begins, weights, self.is_held).positions)

    def _usable(self, ends: np.ndarray) -> np.ndarray:
        ends = np.where(self.is_held, self.starts[0], ends)
        usable = ends[np.all(np.isfinite(ends), axis=1)]
        return usable if len(usable) else self.starts

    def _chosen(self, pool: np.ndarray, heights: np.ndarray) -> np.ndarray:
        """The user's starts, or climbers that go on, then peaks of a scored pool and some of it at random."""
        lanes = self.sample.num_climbers
        users = np.where(self.is_held, self.starts[0], self.starts[:LARGEST_START])
        users = (self.waiting if self.found else users)[: lanes // 2]
        best = peaks(pool, heights, lanes - lanes // 4 - len(users))
        possible = np.flatnonzero(np.isfinite(heights))
        others = self.generator.choice(possible, lanes - len(users) - len(best)) if len(possible) else np.zeros(0, int)
        return np.concatenate([users, pool[best], pool[others]])

    def _climb_on(self, begins: np.ndarray, *, num_users: int = 0) -> None:
        climbed = self.sample.climb(begins, None, self.is_held)
        self._remember(climbed, np.arange(len(begins)) < num_users)

    def _remember(self, climbed: Climbed, is_users: np.ndarray) -> None:
        """Climbers that have reached a peak which is not known yet, the user's first, and those that have not."""
        heights = np.where(climbed.has_converged | ~np.isfinite(climbed.values), -np.inf, climbed.values)
        order = np.argsort(-heights, kind="stable")[:MOST_WAITING]
        self.waiting = climbed.positions[order[np.isfinite(heights[order])]]
        for place in np.flatnonzero(climbed.has_converged):
            peak = Peak(
                climbed.positions[place],
                evidence(float(climbed.values[place]), climbed.hessians[place], self.is_held),
                climbed.hessians[place],
                climbed.log_likelihoods[place],
                bool(is_users[place]),
            )
            if np.isfinite(peak.evidence) and all(known.distance(peak.position) > SAME_PEAK for known in self.found):
                self.found.append(peak)

    def _symmetries(
        self, maps: list[SignedPermutation], pool: np.ndarray, heights: np.ndarray
    ) -> list[SignedPermutation]:
        possible = np.flatnonzero(np.isfinite(heights))
        order = possible[np.argsort(-heights[possible], kind="stable")][: max(len(possible) // 2, NUM_TRIALS)]
        if not len(order):
            return []
        return symmetries(maps, pool[self.generator.choice(order, NUM_TRIALS)], self._heights)

    def _look_again(
        self, spread: Spread, ends: np.ndarray, maps: list[SignedPermutation], same: list[SignedPermutation]
    ) -> None:
        """From what is known: rows that are explained badly, mirror images, lines, and what lies between."""
        half = self.sample.num_climbers // 2
        best = self._best(same)
        badly = self._badly_explained(best[0])
        weights = subsets(self.generator, half, self.values, badly, len(self.is_held))
        begins = between(self.generator, half, self._positions(best), 0.3 * np.minimum(spread.scale, 1.0))
        mirrored = self._mirrored(best, maps, same, half)
        all_weights = np.concatenate([weights, np.repeat(self.sample.weights[None], len(mirrored), axis=0)])
        climbed = self.sample.climb(
            np.concatenate([np.where(self.is_held, self.starts[0], begins), mirrored]), all_weights, self.is_held
        )
        has_all_rows = np.arange(len(all_weights)) >= half
        seen = Climbed(*(leaf[has_all_rows] for leaf in climbed))
        waiting = self.waiting
        self._remember(seen, np.zeros(len(mirrored), bool))
        self.waiting = np.concatenate([waiting, self.waiting])
        best = self._best(same)
        ends = np.concatenate([ends, self._usable(climbed.positions), self._positions(best)])
        on_lines = self._on_lines(best, spread)
        pool, heights = self._scored(np.concatenate([on_lines, self._population(spread, ends)]))
        self._climb_on(self._chosen(pool, heights))

    def _best(self, same: list[SignedPermutation]) -> list[Peak]:
        return sorted(_without_copies(self.found, same), key=lambda peak: -peak.evidence)[:NUM_BEST]

    def _positions(self, chosen: list[Peak]) -> np.ndarray:
        return np.stack([peak.position for peak in chosen])

    def _badly_explained(self, peak: Peak) -> np.ndarray:
        """Chances (n,) of rows: those of the quarter with the lowest log-likelihoods."""
        known = self.sample.weights > 0
        values = np.where(np.isfinite(peak.log_likelihoods), peak.log_likelihoods, -np.inf)
        limit = np.quantile(values[known], 0.25, method="nearest")
        is_bad = known & (values <= limit)
        chances: np.ndarray = is_bad / is_bad.sum()
        return chances

    def _mirrored(
        self, best: list[Peak], maps: list[SignedPermutation], same: list[SignedPermutation], count: int
    ) -> np.ndarray:
        """The highest images under maps that are no symmetries; what is missing are draws around the best."""
        known = {id(mapped) for mapped in same}
        images = [mapped(peak.position) for peak in best for mapped in maps if id(mapped) not in known]
        nearby = between(self.generator, count, self._positions(best), np.full(len(self.is_held), 0.1))
        flat = np.stack([*images, *nearby])
        flat, heights = self._scored(flat)
        order = np.argsort(-heights[: len(images)], kind="stable")[:count]
        return np.concatenate([flat[order], flat[len(images) :]])[:count]

    def _on_lines(self, best: list[Peak], spread: Spread) -> np.ndarray:
        """Peaks on lines through the best along parameters."""
        free = np.flatnonzero(~self.is_held)
        places = self.generator.permutation(free)[: max(MOST_LINES // len(best), 1)]
        reach = self.width * around(self.starts, spread)
        points = np.concatenate([lines(self.generator, peak.position, reach, places) for peak in best])
        flat, heights = self._scored(points.reshape(-1, len(self.is_held)))
        return np.asarray(flat[peaks_on_lines(heights.reshape(points.shape[:2])).reshape(-1)])


def evidence(value: float, hessian: np.ndarray, is_held: np.ndarray) -> float:
    """log of height times Laplace volume of what is free; minus infinity if it is no peak."""
    free = ~is_held
    sign, log_determinant = np.linalg.slogdet(-hessian[np.ix_(free, free)])
    if not (sign > 0 and np.isfinite(log_determinant) and np.isfinite(value)):
        return -np.inf
    return float(value + 0.5 * free.sum() * np.log(2.0 * np.pi) - 0.5 * log_determinant)


def _is_constant(values: np.ndarray) -> bool:
    """Whether log-likelihoods along a line, as far as there are any, are the same to the last bit."""
    possible = values[np.isfinite(values)]
    return len(possible) > 1 and bool(np.all(possible == possible[0]))


def _middle_and_half(steps: np.ndarray, priors: np.ndarray) -> tuple[float, float]:
    """Of the steps at which a log-prior is within a half of its highest; infinite if it does not fall off."""
    best = np.max(priors)
    inside = np.flatnonzero(priors >= best - 0.5)
    if not np.isfinite(best) or inside[0] == 0 or inside[-1] == len(steps) - 1:
        return 0.0, np.inf
    first, last = steps[inside[0]], steps[inside[-1]]
    gap = min(steps[inside[-1] + 1] - last, first - steps[inside[0] - 1])
    return 0.5 * (first + last), 0.5 * (last - first + gap)


def _without_copies(found: list[Peak], same: list[SignedPermutation]) -> list[Peak]:
    """One of each set of peaks that are images of each other; the first that was found, the user's own if there is."""
    if not same:
        return found
    kept: list[Peak] = []
    for peak in found:
        images = copies(peak.position, same)
        if not any(known.distance(image) <= SAME_PEAK for known in kept for image in images):
            kept.append(peak)
    return kept


def _row_values(sample: Sample) -> np.ndarray:
    """The numbers of each row (n, p), standardised."""
    leaves = [np.asarray(leaf, np.float64).reshape(NUM_ROWS, -1) for leaf in jax.tree.leaves(sample.rows)]
    values = np.concatenate(leaves, axis=1) if leaves else np.zeros((NUM_ROWS, 0))
    values = np.where(np.isfinite(values), values, 0.0)
    deviation = values.std(axis=0)
    centred: np.ndarray = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return centred
