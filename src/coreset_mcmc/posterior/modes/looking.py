"""The search for modes from end to end: peaks of a sample, a race on all rows, and where chains should begin."""

from __future__ import annotations

import numpy as np

from coreset_mcmc.core.trees import first_position, flat_positions, positions_of
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import summed_differences
from coreset_mcmc.posterior.by_passes import FullPosterior
from coreset_mcmc.posterior.modes.found import FAR, Mode, Modes
from coreset_mcmc.posterior.modes.ranking import DESCRIPTION, Race
from coreset_mcmc.posterior.modes.sample import Sample
from coreset_mcmc.posterior.modes.search import Peaks, find_peaks
from coreset_mcmc.posterior.modes.symmetry import copies
from coreset_mcmc.posterior.newton import NewtonSearch

TIE = 0.05
"""A difference of log masses up to which the user's own mode is as good as the best."""
LEAST_GAIN = 10.0
"""Nats by which a place must be better than the user's start, besides one for each parameter, if there is no mode."""


def find_modes(
    model: Model, rows: Rows, positions: Position, search: NewtonSearch, *, seed: int = 0, width: float = 1.0
) -> Modes:
    """Look for the modes of the posterior of all rows.

    Args:
        model: bound to its rows.
        rows: of which a sample in memory is searched, and all are passed over for those peaks that may matter.
        positions: the user's starts, with a leading axis.
        search: how a mode of all rows is found, and to what precision.
        seed: of the sample and of the population of starts.
        width: multiplies the distances at which is looked.
    """
    core, position = model.compiled or model, first_position(positions)
    starts = _distinct_starts(flat_positions(positions))
    sample = Sample(core, rows, position, seed)
    peaks = find_peaks(sample, starts, seed, width)
    race = Race(FullPosterior(core, rows, position), search, peaks, sample.count)
    modes = race.run() if peaks.found else []
    num_evaluations = sample.num_evaluations + race.num_evaluations
    found = Modes(tuple(modes), (), 1, False, starts[0], len(peaks.found), peaks.num_starts, num_evaluations)
    if modes:
        return _with_copies(found._replace(start=_main(modes).position), peaks)
    start, num_more = _highest(core, rows, position, starts[0], peaks)
    return found._replace(start=start, num_evaluations=num_evaluations + num_more)


def _distinct_starts(flat: np.ndarray) -> np.ndarray:
    """The user's starts without repetition, in their order."""
    _, first = np.unique(flat, axis=0, return_index=True)
    return flat[np.sort(first)]


def _main(modes: list[Mode]) -> Mode:
    """The most massive mode; the user's own among equals."""
    equals = [mode for mode in modes if mode.evidence >= modes[0].evidence - TIE]
    return next((mode for mode in equals if mode.is_users), modes[0])


def _with_copies(found: Modes, peaks: Peaks) -> Modes:
    """What symmetries make of the main mode."""
    main = next(mode for mode in found.modes if mode.position is found.start)
    images = copies(main.position, peaks.symmetries)
    num_copies = int(np.sum(main.distances(images) > FAR)) + 1
    moving = [mapped for mapped in peaks.symmetries if main.distances(mapped(main.position)[None])[0] > FAR]
    return found._replace(
        symmetries=tuple(mapped.words for mapped in moving),
        num_copies=num_copies,
        changes_signs=any(bool(np.any(mapped.signs < 0)) for mapped in moving),
    )


def _highest(model: Model, rows: Rows, position: Position, start: np.ndarray, peaks: Peaks) -> tuple[np.ndarray, int]:
    """The highest place of the population where no mode is known, if likelihood and density both prefer it.

    A density can be high without holding mass; that of a hierarchical prior is where all effects are alike. So the rows
    must ask for the place, too.
    """
    if np.array_equal(peaks.highest, start):
        return start, 0
    both = positions_of(position, np.stack([start, peaks.highest]))
    gain = summed_differences(rows, model, both, DESCRIPTION)
    priors = [
        float(model.log_prior(first_position(positions_of(position, flat[None])))) for flat in (start, peaks.highest)
    ]
    least = LEAST_GAIN + len(start)
    is_better = gain[1] - gain[0] > least and gain[1] - gain[0] + priors[1] - priors[0] > least
    return (peaks.highest if is_better else start), 2 * rows.size


def mode_at_start(modes: Modes) -> Mode | None:
    """The mode that chains begin in."""
    return next((mode for mode in modes.modes if np.array_equal(mode.position, modes.start)), None)
