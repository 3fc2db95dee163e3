"""Whether there is a mode that the draws do not represent: a search of its own, from other starts.

The search of a fit has one seed, which belongs to the data, so that all fits of the same rows begin alike; a verdict
must not rest on the same luck. Here it is made again with another sample of rows, another population and three times
the width, and with draws of the fit among the starts. What both searches know is put together, each mode with its share
of the mass by Laplace's approximation on all rows.

A mode with more mass than all that the draws represent condemns them; one that holds more than a thousandth of the mass
calls for care. Copies of a mode under an exchange of labels are no other modes: whatever does not depend on labels is
the same in all of them. So it is with signs that nobody knows, but who looks at such a parameter sees one sign of two:
that calls for care.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import flat_positions, thinned
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.blocks import rows_of
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.fitting.exploring import pooled_flat, where
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.modes.found import RELEVANT, Modes
from coreset_mcmc.posterior.modes.looking import find_modes
from coreset_mcmc.posterior.newton import NewtonSearch
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.verdict.verdict import BAD, CARE, GOOD, Finding

NAME = "Other modes (their share of the mass)"
WIDTH = 3.0
NUM_STARTS = 4
"""Draws of the fit among the starts."""
MOST_COMPARED = 2_000
"""Draws that are told apart by mode."""
SEARCH = NewtonSearch(max_iterations=50, tolerance=0.3)


class Looked(NamedTuple):
    """The finding, and what it took."""

    finding: Finding
    num_evaluations: int


def other_modes(fit: Fit, model: Model, positions: Position, *, seed: int) -> Looked:
    """Look elsewhere; ``positions`` are the draws of the fit (chain, draw, ...)."""
    if model.log_concave:
        text = "The log-likelihood is concave: there are no modes far apart."
        return Looked(Finding(NAME, 0.0, GOOD, text, ""), 0)
    rows = rows_of(fit.own_rows, "trust")
    own_seed = int(np.random.SeedSequence([int(fit.settings["random_seed"]), seed, 1]).generate_state(1)[0])
    starts = jax.tree.map(np.asarray, thinned(positions, NUM_STARTS))
    found = find_modes(model, rows, starts, SEARCH, seed=own_seed, width=WIDTH)
    flat = pooled_flat(positions)
    flat = flat[np.linspace(0, len(flat) - 1, min(len(flat), MOST_COMPARED)).astype(int)]
    is_comparable = not found.symmetries and all(
        mode.search is not None for mode in found.modes if mode.evidence > -np.inf
    )
    known = [mode for modes in _known(model, rows) for mode in modes.modes if mode.search is not None]
    return Looked(judged(found.together_with(known) if is_comparable else found, flat, starts), found.num_evaluations)


def _known(model: Model, rows: Rows) -> list[Modes]:
    """What earlier searches have found on these rows."""
    core = model.compiled or model
    return [found for key, found in rows.memory.items() if isinstance(key, tuple) and key[:2] == ("modes", core)]


def judged(modes: Modes, flat: np.ndarray, starts: Position) -> Finding:
    """From modes and draws (n, d) to a level."""
    looked = f"{modes.num_starts:,} starts elsewhere"
    if not modes.modes:
        return _without_modes(modes, flat_positions(starts)[0], looked)
    shares, is_missing = modes.shares, modes.is_missing(flat)
    if not np.all(np.isfinite(shares)):
        text = "The masses of the modes that were found cannot be computed."
        return Finding(NAME, math.nan, BAD, text, "Use stronger priors, or another parametrisation.")
    missing = float(shares[is_missing].sum())
    largest = float(shares[is_missing].max(initial=0.0))
    level = BAD if largest > 1.0 - missing else CARE if missing > RELEVANT else GOOD
    if level == GOOD and modes.changes_signs:
        text = f"From {looked} no other mode that matters came up, but a sign is not known."
        return Finding(NAME, missing, CARE, text + _about_copies(modes), "Give a prior that knows the sign.")
    if level == GOOD:
        found = "one mode" if modes.num_relevant == 1 else f"{modes.num_relevant} modes"
        text = f"From {looked} {found} came up, and the draws leave out none that matters."
        return Finding(NAME, missing, level, text + _about_copies(modes), "")
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], starts)
    places = [
        f"{shares[number]:.1%} at {where(modes.modes[number].position, first)}"
        for number in np.flatnonzero(is_missing & (shares > 0.0))
    ]
    text = f"From {looked}, modes came up that the draws leave out, with these shares of the mass: {'; '.join(places)}."
    remedy = (
        "The draws describe one mode out of several. Start in another one with initvals=..., or make the model "
        "identify one of them; more draws and fit.exact() stay where they are."
    )
    return Finding(NAME, missing, level, text + _about_copies(modes), remedy)


def _about_copies(modes: Modes) -> str:
    if not modes.symmetries:
        return ""
    return (
        f" The posterior is the same after a change of {' or of '.join(modes.symmetries[:3])}, so that each mode has "
        f"{modes.num_copies} copies. That is harmless for whatever is the same in all of them, such as predictions; a "
        "parameter that is not is described in one of them."
    )


def _without_modes(modes: Modes, start: np.ndarray, looked: str) -> Finding:
    """No peak to compare with: is there a place that all rows prefer by far?"""
    if np.array_equal(modes.start, start):
        return Finding(NAME, 0.0, GOOD, f"From {looked} no better place came up.", "")
    text = f"From {looked} a place came up that is far more probable than where the draws are."
    return Finding(NAME, math.nan, BAD, text, "Start there or nearer to it with initvals=....")
