"""Interactions of levels that no row has: their columns are zero everywhere and are left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coreset_mcmc.tables.design import DesignTerms, Term
from coreset_mcmc.tables.factors import CodedTerm
from coreset_mcmc.tables.first_pass import Measured
from coreset_mcmc.tables.moments import Ranges
from coreset_mcmc.tables.row_terms import RowTerms
from coreset_mcmc.tables.terms import Component, Selected

MOST_SHOWN = 5


def without_empty_cells(
    found: DesignTerms, measured: Measured, shift: np.ndarray
) -> tuple[DesignTerms, Measured, np.ndarray, list[str]]:
    """The design without them, what was measured of the rest, and what a user should know."""
    low, high = measured.ranges
    is_empty = np.array([":" in label for label in found.labels], bool) & (low == 0) & (high == 0)
    if not is_empty.any():
        return found, measured, shift, []
    kept = np.flatnonzero(~is_empty)
    all_kept = np.concatenate([kept, np.arange(len(found.labels), len(shift))])
    moments = measured.moments
    measured = measured._replace(
        moments=moments._replace(means=moments.means[all_kept], products=moments.products[np.ix_(all_kept, all_kept)]),
        ranges=_some(measured.ranges, kept),
        of_success=_some(measured.of_success, kept),
        of_others=_some(measured.of_others, kept),
    )
    empty = [label for label, is_gone in zip(found.labels, is_empty, strict=True) if is_gone]
    listed = ", ".join(empty[:MOST_SHOWN]) + (", ..." if len(empty) > MOST_SHOWN else "")
    note = f"no row has these combinations of levels, which are left out: {listed}"
    if len(empty) > MOST_SHOWN:
        note += f" ({len(empty)} in all)"
    return _without(found, is_empty), measured, shift[all_kept], [note]


def _some(ranges: Ranges, kept: np.ndarray) -> Ranges:
    return Ranges(ranges.low[kept], ranges.high[kept])


def _without(found: DesignTerms, is_empty: np.ndarray) -> DesignTerms:
    terms: list[Term] = []
    dense: list[Component] = []
    factors: list[CodedTerm] = []
    of_term = {factor.columns.start: factor for factor in found.rows.factors}
    evaluated, width = iter(found.rows.dense), 0
    for term in found.terms:
        own = np.flatnonzero(~is_empty[term.columns])
        place = slice(width, width + len(own))
        factor = of_term.get(term.columns.start)
        if factor is not None:
            factors.append(replace(factor, columns=place))
        else:
            component = next(evaluated)
            is_whole = len(own) == term.columns.stop - term.columns.start
            if len(own):
                dense.append(component if is_whole else Selected(component, tuple(own.tolist())))
        if len(own):
            levels = None if term.levels is None else tuple(term.levels[place_] for place_ in own)
            terms.append(replace(term, columns=place, levels=levels))
        width += len(own)
    labels = tuple(label for label, is_gone in zip(found.labels, is_empty, strict=True) if not is_gone)
    rows: RowTerms = replace(found.rows, dense=tuple(dense), width=width, factors=tuple(factors))
    return replace(found, terms=tuple(terms), labels=labels, rows=rows)
