"""Before training: is there a better place to begin than where the user starts, and what else is there?

See :mod:`coreset_mcmc.posterior.modes`. Nothing is looked for where a model is known to have one mode, or where a
method says that its chains do not begin at one. What was found belongs to model, rows and starts: other seeds and sizes
of a coreset share it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np

from coreset_mcmc.core.trees import coordinate_names, first_position, flat_positions, num_positions, positions_of
from coreset_mcmc.core.types import Position
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.fitting.reading import Reading
from coreset_mcmc.posterior.by_passes import mode_key
from coreset_mcmc.posterior.modes.found import RELEVANT, Modes
from coreset_mcmc.posterior.modes.looking import find_modes, mode_at_start

UNKNOWN_SIGN = " (nothing tells which sign is right)"
MOST_NAMED = 6
"""Parameters whose values tell where a mode is."""


def explore(reading: Reading) -> Reading:
    """The same, with chains that begin in the most massive mode."""
    model = reading.model.compiled or reading.model
    search = reading.method.mode_search
    if search is None or reading.model.log_concave:
        return reading
    began, memory = time.perf_counter(), reading.rows.memory
    flat = flat_positions(reading.positions)
    known = "modes", model, flat.tobytes()
    if known not in memory:
        memory[known] = find_modes(model, reading.rows, reading.positions, search)
        cost = Cost(time.perf_counter() - began, 0.0, 0, memory[known].num_evaluations, "modes looked for")
        reading = reading._replace(exploring=cost)
    modes: Modes = memory[known]
    mode = mode_at_start(modes)
    if mode is not None and mode.search is not None and bool(mode.search.has_converged):
        memory.setdefault(mode_key(model, mode.position), mode.search)
    return reading._replace(modes=modes, positions=_begun(reading.positions, modes.start))


def _begun(positions: Position, start: np.ndarray) -> Position:
    """All chains at one place; the user's starts if that is where the first of them is."""
    flat = flat_positions(positions)
    if np.array_equal(flat[0], start):
        return positions
    everywhere = np.repeat(start[None], num_positions(positions), axis=0)
    return jax.tree.map(jax.numpy.asarray, positions_of(first_position(positions), everywhere))


def missing_share(modes: Modes, positions: Position) -> float:
    """Of the mass, in modes that draws (chain, draw, ...) do not represent."""
    flat = pooled_flat(positions)
    return float(np.sum(modes.shares[modes.is_missing(flat)]))


def pooled_flat(positions: Position) -> np.ndarray:
    """Draws (n, d) of all chains."""
    return flat_positions(jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), positions))


def settings_of(reading: Reading, positions: Position) -> Mapping[str, str | float]:
    """What a result remembers about modes."""
    if reading.model.log_concave:
        return {"modes": "one: the log-likelihood is concave", "other_modes": 0.0}
    if reading.modes is None:
        return {}
    text = in_words(reading.modes, first_position(reading.positions))
    return {"modes": text, "other_modes": missing_share(reading.modes, positions)}


def in_words(modes: Modes, position: Position) -> str:
    """How many, where and with which shares."""
    looked = f"from {modes.num_starts:,} starts"
    if not modes.modes:
        return f"none found {looked}"
    text = f"{modes.num_relevant} of {modes.num_peaks} peaks {looked} matter"
    if modes.num_relevant > 1:
        text += ": " + "; ".join(
            f"{share:.2%} at {where(mode.position, position)}"
            for share, mode in zip(modes.shares, modes.modes, strict=True)
            if share > 0.0
        )
    if modes.symmetries:
        text += f"; {modes.num_copies} copies of each, which differ in {' or '.join(modes.symmetries[:3])}"
        text += UNKNOWN_SIGN if modes.changes_signs else ""
    return text


def where(flat: np.ndarray, position: Position) -> str:
    """The first few parameters by name, on the scale on which chains move."""
    names = coordinate_names(position)
    shown = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names[:MOST_NAMED], flat, strict=False))
    return shown + (", ..." if len(names) > MOST_NAMED else "")


def mode_warnings(settings: Mapping[str, object]) -> list[str]:
    """Whether the draws leave out a mode that matters."""
    missing, text = settings.get("other_modes", 0.0), str(settings.get("modes", ""))
    if isinstance(missing, float) and missing <= RELEVANT:
        if not text.endswith(UNKNOWN_SIGN):
            return []
        return [
            f"The posterior is the same for either sign of some parameters, and the draws describe one of its copies: "
            f"{text}. That is harmless for whatever is the same in all copies, such as predictions."
        ]
    return [
        f"The posterior has several modes, and the draws leave out a share of {_share(missing)} of its mass (by "
        f"Laplace's approximation): they describe the most massive mode alone. Modes: {text}. Neither more draws nor "
        "fit.exact() will find the others; start there with initvals=..., or make the model identify one of them."
    ]


def _share(share: object) -> str:
    return f"{share:.2g}" if isinstance(share, float) and np.isfinite(share) else "unknown size"


def with_exploring(pilot: Cost, exploring: Cost | None) -> Cost:
    """What came before training, together."""
    if exploring is None:
        return pilot
    return replace(
        exploring,
        seconds=pilot.seconds + exploring.seconds,
        compile_seconds=pilot.compile_seconds,
        num_steps=pilot.num_steps,
        num_evaluations=pilot.num_evaluations + exploring.num_evaluations,
    )
