"""One pass that measures a design: what is missing or out of range, moments, ranges, and how many rows are kept.

Everything that standardisation, default priors, start values and checks need follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.task import Program
from coreset_mcmc.tables.columns import (
    NUMBER,
    WHOLE,
    CleanRows,
    Column,
    lacking_rows,
    missing_by_column,
    without_missing,
)
from coreset_mcmc.tables.expanded import Expanded
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.moments import LogMeanExp, Moments, Ranges, log_mean_exp, moments_of, ranges_of
from coreset_mcmc.tables.row_filter import Choice
from coreset_mcmc.tables.row_terms import RowTerms, total_offset
from coreset_mcmc.tables.standardised import WEIGHT
from coreset_mcmc.tables.terms import Component
from coreset_mcmc.tables.trouble import (
    LARGEST_VALUE,
    Found,
    PlaceOf,
    Trouble,
    Troubles,
    both,
    found,
    is_usable,
    joined,
    trouble_in,
)

RESPONSE = "response"
"""The key of its troubles; those of columns, terms and parts of the offset are what errors are about."""


class Measured(NamedTuple):
    """What is known about some rows."""

    kept: np.ndarray
    """How many rows of each leaf lack nothing."""
    missing: dict[str, int]
    lacking: Found | None
    """Rows that lack a value in any column."""
    troubles: Troubles
    outside: Found | None
    """Responses that the family cannot have."""
    moments: Moments
    """Of the columns of the design; then response minus offset (gaussian, t), or statistics of the response and the
    offset; then the numbers that slopes of groups belong to."""
    ranges: Ranges
    """Of the columns of the design."""
    of_success: Ranges
    """The same over rows that pull the predictor up, for families in which outcomes can be parted."""
    of_others: Ranges
    response: Ranges
    offset: LogMeanExp
    left_out: int = 0
    """Rows for which the filter does not hold, or without weight."""
    without_weight: int = 0
    fractions: Found | None = None
    """Weights that are no whole numbers."""
    negative: Found | None = None
    """Weights below zero."""

    def joined(self, later: Measured) -> Measured:
        return Measured(
            np.concatenate([self.kept, later.kept]),
            {name: count + later.missing[name] for name, count in self.missing.items()},
            both(self.lacking, later.lacking),
            joined(self.troubles, later.troubles),
            both(self.outside, later.outside),
            self.moments.joined(later.moments),
            self.ranges.joined(later.ranges),
            self.of_success.joined(later.of_success),
            self.of_others.joined(later.of_others),
            self.response.joined(later.response),
            self.offset.joined(later.offset),
            self.left_out + later.left_out,
            self.without_weight + later.without_weight,
            both(self.fractions, later.fractions),
            both(self.negative, later.negative),
        )


@dataclass(frozen=True, eq=False)
class FirstPass(Program):
    """Measures leaves of a table; the argument is a first estimate of the means."""

    columns: tuple[Column, ...]
    terms: RowTerms
    labels: tuple[str, ...]
    offset_labels: tuple[str, ...]
    response: Component
    family: Family
    place_of: PlaceOf
    choice: Choice

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Measured:
        frame: Any = leaf.batch
        return self.measured(frame, leaf.start, arguments[0])

    def merge(self, one: Measured, other: Measured) -> Measured:
        with np.errstate(all="ignore"):
            return one.joined(other)

    def first_estimate(self, frame: pd.DataFrame) -> np.ndarray:
        """Means over the first rows of a table; zero where they are of no use, and for statistics such as counts,
        which are exact so."""
        measured = self.measured(frame, 0, np.zeros(self.num_measured))
        means = np.where(np.abs(measured.moments.means) <= LARGEST_VALUE, measured.moments.means, 0.0)
        if not self.family.has_scale:
            means[self.terms.width : self.terms.width + self.num_statistics] = 0.0
        return means

    @cached_property
    def num_statistics(self) -> int:
        """Numbers about the response that are measured."""
        if self.family.has_scale:
            return 1
        nothing = dict.fromkeys((key for key, _ in self.terms.extras), np.zeros(0))
        return len(self.family.statistics(np.zeros(0), nothing))

    @property
    def num_measured(self) -> int:
        has_both = bool(self.offset_labels) and not self.family.has_scale
        return self.terms.width + self.num_statistics + has_both + len(self.terms.groups.labels)

    def measured(self, frame: pd.DataFrame, start: int, shift: np.ndarray) -> Measured:
        chosen, without_weight = self.choice.places(frame)
        some = frame if chosen is None else frame.iloc[chosen]
        missing = missing_by_column(some, (column.name for column in self.columns))
        rows = without_missing(some, start, self.columns, missing, self.place_of, chosen)
        counts = {
            column.name: int(missing[column.name].sum()) if column.name in missing else 0 for column in self.columns
        }
        lacking = lacking_rows(missing, start, chosen)
        if rows.count:
            with np.errstate(all="ignore"):
                found = self._measured(rows, counts, lacking, shift)
        else:
            found = self._nothing(counts, lacking)
        return found._replace(left_out=len(frame) - len(some), without_weight=without_weight)

    def _measured(self, rows: CleanRows, counts: dict[str, int], lacking: Found | None, shift: np.ndarray) -> Measured:
        codes = self.terms.codes(rows)
        expanded = Expanded(self.terms, self.num_measured)
        values = np.empty((rows.count, len(expanded.places)))
        x = self.terms.design(rows, values)
        parts, extras = self.terms.offset_parts(rows), self.terms.extra_values(rows)
        y = np.ascontiguousarray(self.response.values(rows)[:, 0], float)
        weights = extras.get(WEIGHT)
        outside = self.family.outside(y, extras)
        offset = total_offset(parts)
        ranges, of_success, of_others = self._ranges(expanded, x, codes, y, extras)
        multipliers = self.terms.groups.values(rows)
        troubles = self._troubles(rows, (x, multipliers), ranges, parts, y, extras)
        tail = self._tail(y, offset, extras)
        for place, column in enumerate([*tail, *multipliers.T], start=len(self.terms.places)):
            values[:, place] = column
        return Measured(
            np.array([rows.count], np.int64),
            counts,
            lacking,
            troubles,
            None if outside is None else found(outside, y, rows.row_of),
            expanded.moments(values, codes, shift, weights),
            ranges,
            of_success,
            of_others,
            ranges_of(y[:, None]),
            log_mean_exp(np.zeros(0) if offset is None else offset, weights),
            fractions=None if weights is None else found(weights != np.floor(weights), weights, rows.row_of),
            negative=None if weights is None else found(~(weights >= 0), weights, rows.row_of),
        )

    def _tail(self, y: np.ndarray, offset: np.ndarray | None, extras: dict[str, np.ndarray]) -> list[np.ndarray]:
        """What is measured beside the design."""
        if self.family.has_scale:
            return [y if offset is None else y - offset]
        statistics = self.family.statistics(y, extras)
        return statistics if offset is None else [*statistics, offset]

    def _ranges(
        self, expanded: Expanded, x: np.ndarray, codes: np.ndarray, y: np.ndarray, extras: dict[str, np.ndarray]
    ) -> tuple[Ranges, Ranges, Ranges]:
        outcomes = self.family.outcomes(y, extras)
        if outcomes is None:
            nothing = expanded.ranges(x[:0], codes[:0])
            return expanded.ranges(x, codes), nothing, nothing
        up, down = (expanded.ranges(x, codes, chosen) for chosen in outcomes)
        return (up.joined(down) if np.all(outcomes[0] | outcomes[1]) else expanded.ranges(x, codes)), up, down

    def _troubles(
        self,
        rows: CleanRows,
        columns: tuple[np.ndarray, np.ndarray],
        ranges: Ranges,
        parts: Sequence[np.ndarray],
        y: np.ndarray,
        extras: dict[str, np.ndarray],
    ) -> Troubles:
        found_in: dict[str, Trouble | None] = {}
        for column in self.columns:
            if column.kind in (NUMBER, WHOLE):
                found_in[f"column {column.name!r}"] = trouble_in(rows.columns[column.name], rows.row_of)
        for label, part in zip(self.offset_labels, parts, strict=True):
            found_in[f"term {label!r}"] = trouble_in(part, rows.row_of)
        for number, place in enumerate(self.terms.places):
            if not is_usable(ranges.low[place], ranges.high[place]):
                found_in[f"term {self.labels[place]!r}"] = trouble_in(columns[0][:, number], rows.row_of)
        for number, label in enumerate(self.terms.groups.labels):
            found_in[f"term {label!r}"] = trouble_in(columns[1][:, number], rows.row_of)
        for key, values in extras.items():
            found_in[key] = trouble_in(values, rows.row_of)
        found_in[RESPONSE] = trouble_in(y, rows.row_of)
        return {subject: trouble for subject, trouble in found_in.items() if trouble is not None}

    def _nothing(self, counts: dict[str, int], lacking: Found | None) -> Measured:
        none, width = np.empty((0, self.num_measured)), self.terms.width
        ranges = ranges_of(none[:, :width])
        moments = moments_of(none, np.zeros(self.num_measured))
        kept, mean = np.zeros(1, np.int64), log_mean_exp(np.zeros(0))
        of_response = ranges_of(none[:, :1])
        return Measured(kept, counts, lacking, {}, None, moments, ranges, ranges, ranges, of_response, mean)
