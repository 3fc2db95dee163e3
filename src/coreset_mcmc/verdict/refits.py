"""Fits like a given one with other rows: how far the choice of rows decides the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.core.trees import chain_first, named_leaves, pooled
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.selection import Selection
from coreset_mcmc.driver.progress import labelled
from coreset_mcmc.fitting.final_check import FEW_DRAWS
from coreset_mcmc.fitting.fit import fit_in_silence
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.methods.registry import DEFAULT_METHOD, METHODS
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.left_out import kl_where_draws_are
from coreset_mcmc.verdict import rules


def options_of(fit: Fit) -> dict[str, Any]:
    """Options of ``fit`` for another one like it with rows drawn anew.

    A fit that was read from a file has forgotten them: the method has its default settings then. Rows that were given
    cannot be drawn anew: as many uniform ones stand in for them, trained by the default method.
    """
    sizes = fit.posterior.sizes
    if fit.recipe is None:
        make = METHODS.get(fit.settings["method"], DEFAULT_METHOD)
        return {"coreset_size": fit.coreset.size, "draws": sizes["draw"], "chains": sizes["chain"], "method": make()}
    selection: Selection | None = fit.recipe["selection"]
    if selection is not None and selection.names_rows:
        return {**fit.recipe, "selection": None, "method": None}
    return dict(fit.recipe)


def with_rows(options: dict[str, Any], count: int) -> dict[str, Any]:
    """The same options with fewer rows, for the programs that are there already."""
    given: Method | None = options["method"]
    method = given or DEFAULT_METHOD(kernel=options.get("kernel"))
    resized = method.resized(count).with_room(options["coreset_size"])
    kernel = options.get("kernel") if given is not None else None
    return {**options, "coreset_size": count, "method": resized, "kernel": kernel}


class Refit(NamedTuple):
    """Another fit, or why there is none."""

    fit: Fit | None
    failure: str

    @property
    def num_evaluations(self) -> int:
        return 0 if self.fit is None else self.fit.num_evaluations

    @property
    def kl_estimate(self) -> float:
        """Its estimated KL, infinite if that could not be computed; NaN if there is no fit."""
        return math.nan if self.fit is None else largest([kl_where_draws_are(self.fit)])


def largest(estimates: Iterable[float]) -> float:
    """The largest estimated KL; one that is NaN counts as infinite. NaN if there is none."""
    return max((math.inf if math.isnan(estimate) else estimate for estimate in estimates), default=math.nan)


def largest_known(estimates: Iterable[float]) -> float:
    """The largest estimated KL; NaN if one of them is, or if there is none: what is unknown excuses nothing."""
    values = list(estimates)
    return math.nan if any(math.isnan(value) for value in values) else max(values, default=math.nan)


def refit(fit: Fit, options: dict[str, Any], *, seed: int, number: int, progressbar: bool) -> Refit:
    """A fit whose seed follows from that of the first, a seed of the user and a running number.

    Whoever interrupts it wants no verdict: a half-made fit would speak against the one that is judged.
    """
    entropy = [int(fit.settings["random_seed"]), seed, number]
    own_seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    assert fit.model is not None
    request = Request(fit.model, fit.own_rows, own_seed, progressbar=progressbar, most_checked=FEW_DRAWS, **options)
    try:
        made = fit_in_silence(request)
    except (RunError, InputError) as error:
        return Refit(None, str(error).rstrip("."))
    if made.is_interrupted:
        raise KeyboardInterrupt("interrupted while a coreset of other rows was fitted")
    return Refit(made, "")


class Comparison(NamedTuple):
    """How posteriors of several coresets differ."""

    rhat: float
    largest_shift: float
    """In posterior standard deviations."""
    place: str
    """The parameter that moves most."""


def compare(positions: Sequence[Position]) -> Comparison:
    """Draws of each coreset, leaves (chain, draw, ...); chains of a coreset count as one group.

    Continuous parameters are compared on the scale on which chains move; discrete ones if there are no others.
    """
    from arviz_stats.base.array import array_stats  # noqa: PLC0415 - takes a second

    columns = [_columns(part) for part in positions]
    names = columns[0][0]
    count = min(len(values) for _, values in columns)
    groups = np.stack([values[np.linspace(0, len(values) - 1, count).astype(int)] for _, values in columns])
    is_moving = ~(np.ptp(groups, axis=(0, 1)) == 0)
    if len(groups) < 2 or count < 4 or not is_moving.any():
        return Comparison(math.nan, math.nan, "")
    groups, names = groups[..., is_moving], [name for name, moves in zip(names, is_moving, strict=True) if moves]
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.asarray(array_stats.rhat(groups, chain_axis=0, draw_axis=1))
        spread = np.sqrt(np.mean(np.var(groups, axis=1, ddof=1), axis=0))
        shift = np.ptp(groups.mean(axis=1), axis=0) / spread
    rhat, shift = (np.where(np.isnan(values), np.inf, values) for values in (rhat, shift))
    return Comparison(float(rhat.max()), float(shift.max()), names[shift.argmax()])


class OtherCoresets(NamedTuple):
    """Fits with other rows, and how their draws differ from those of the fit that is judged."""

    half: Refit
    """With half the rows; of no fit if there is none."""
    half_stands_in: bool
    """Whether it is one of those that are compared."""
    compared: list[Refit]
    comparison: Comparison
    num_evaluations: int


def other_coresets(
    fit: Fit, positions: Position, num_coresets: int, half_size: int, *, seed: int, progressbar: bool
) -> OtherCoresets:
    """One of half the rows, if ``half_size`` is not zero, and as many more as are compared with ``fit``.

    The half one counts among these if it is near by its own estimate and agrees with ``fit``.
    """
    options, half, made = options_of(fit), Refit(None, ""), []
    if half_size:
        with labelled("half the rows: "):
            half = refit(fit, with_rows(options, half_size), seed=seed, number=0, progressbar=progressbar)
    comparison = _compared(positions, [half] if num_coresets > 1 and half.kl_estimate <= rules.HALF_CARE else [])
    stand_ins = [half] if comparison.rhat <= rules.ACROSS_CARE else []
    for number in range(1 + len(stand_ins), num_coresets):
        with labelled(f"coreset {number + 1} of {num_coresets}: "):
            made.append(refit(fit, options, seed=seed, number=number, progressbar=progressbar))
    if made or not stand_ins:
        comparison = _compared(positions, [*stand_ins, *made])
    num_evaluations = sum(other.num_evaluations for other in (half, *made))
    return OtherCoresets(half, bool(stand_ins), [*stand_ins, *made], comparison, num_evaluations)


def _compared(positions: Position, others: list[Refit]) -> Comparison:
    return compare([positions, *(other.fit.positions() for other in others if other.fit is not None)])


def _columns(positions: Position) -> tuple[list[str], np.ndarray]:
    """Names and draws (draw, d), chains interleaved so that each half of the draws has all of them."""
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves(positions, "theta").items()}
    continuous = {name: leaf for name, leaf in leaves.items() if np.issubdtype(leaf.dtype, np.floating)}
    names, parts = [], []
    for name, leaf in (continuous or leaves).items():
        inner = leaf.shape[2:]
        names += [f"{name}{list(place)}" if inner else name for place in np.ndindex(*inner)]
        draws = pooled(chain_first(leaf))
        parts.append(draws.reshape(len(draws), -1).astype(float))
    return names, np.concatenate(parts, axis=1)


def num_parameters(positions: Position) -> int:
    """How many are compared, from leaves (chain, draw, ...)."""
    return len(_columns(jax.tree.map(lambda leaf: leaf[:, :1], positions))[0])
