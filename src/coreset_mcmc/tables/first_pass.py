"""One pass that measures a design: what is missing or out of range, moments, ranges, and how many rows are kept.

Everything that standardisation, default priors, start values and checks need follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from coreset_mcmc.tables.response import outside_support
from coreset_mcmc.tables.row_terms import RowTerms, total_offset
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
    """Of the columns of the design; then response minus offset (gaussian, t), or response and offset."""
    of_success: Ranges
    """Of the columns of the design where the response is above zero, or everywhere (gaussian, t)."""
    of_others: Ranges
    response: Ranges
    offset: LogMeanExp

    @property
    def ranges(self) -> Ranges:
        return self.of_success.joined(self.of_others)

    def joined(self, later: Measured) -> Measured:
        return Measured(
            np.concatenate([self.kept, later.kept]),
            {name: count + later.missing[name] for name, count in self.missing.items()},
            both(self.lacking, later.lacking),
            joined(self.troubles, later.troubles),
            both(self.outside, later.outside),
            self.moments.joined(later.moments),
            self.of_success.joined(later.of_success),
            self.of_others.joined(later.of_others),
            self.response.joined(later.response),
            self.offset.joined(later.offset),
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

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Measured:
        frame: Any = leaf.batch
        return self.measured(frame, leaf.start, arguments[0])

    def merge(self, one: Measured, other: Measured) -> Measured:
        with np.errstate(all="ignore"):
            return one.joined(other)

    def first_estimate(self, frame: pd.DataFrame) -> np.ndarray:
        """Means over the first rows of a table; zero where they are of no use, and for counts, which are exact so."""
        measured = self.measured(frame, 0, np.zeros(self.num_measured))
        means = np.where(np.abs(measured.moments.means) <= LARGEST_VALUE, measured.moments.means, 0.0)
        if not self.family.has_scale:
            means[self.terms.width] = 0.0
        return means

    @property
    def num_measured(self) -> int:
        has_both = bool(self.offset_labels) and not self.family.has_scale
        return self.terms.width + (2 if has_both else 1)

    def measured(self, frame: pd.DataFrame, start: int, shift: np.ndarray) -> Measured:
        missing = missing_by_column(frame, (column.name for column in self.columns))
        rows = without_missing(frame, start, self.columns, missing, self.place_of)
        counts = {
            column.name: int(missing[column.name].sum()) if column.name in missing else 0 for column in self.columns
        }
        lacking = lacking_rows(missing, start)
        if not rows.count:
            return self._nothing(counts, lacking)
        with np.errstate(all="ignore"):
            return self._measured(rows, counts, lacking, shift)

    def _measured(self, rows: CleanRows, counts: dict[str, int], lacking: Found | None, shift: np.ndarray) -> Measured:
        dense, codes = len(self.terms.places), self.terms.codes(rows)
        expanded = Expanded(self.terms, self.num_measured)
        values = np.empty((rows.count, len(expanded.places)))
        x = self.terms.design(rows, values)
        parts = self.terms.offset_parts(rows)
        y = np.ascontiguousarray(self.response.values(rows)[:, 0], float)
        outside = outside_support(y, self.family)
        offset = total_offset(parts)
        of_success, of_others = self._ranges(expanded, x, codes, y)
        troubles = self._troubles(rows, x, of_success.joined(of_others), parts, y)
        if self.family.has_scale:
            values[:, dense] = y if offset is None else y - offset
        else:
            values[:, dense] = y
            if offset is not None:
                values[:, dense + 1] = offset
        return Measured(
            np.array([rows.count], np.int64),
            counts,
            lacking,
            troubles,
            None if outside is None else found(outside, y, rows.row_of),
            expanded.moments(values, codes, shift),
            of_success,
            of_others,
            ranges_of(y[:, None]),
            log_mean_exp(np.zeros(0) if offset is None else offset),
        )

    def _ranges(self, expanded: Expanded, x: np.ndarray, codes: np.ndarray, y: np.ndarray) -> tuple[Ranges, Ranges]:
        if self.family.has_scale:
            return expanded.ranges(x, codes), expanded.ranges(x[:0], codes[:0])
        return expanded.ranges(x, codes, y > 0), expanded.ranges(x, codes, ~(y > 0))

    def _troubles(
        self, rows: CleanRows, x: np.ndarray, ranges: Ranges, parts: Sequence[np.ndarray], y: np.ndarray
    ) -> Troubles:
        found_in: dict[str, Trouble | None] = {}
        for column in self.columns:
            if column.kind in (NUMBER, WHOLE):
                found_in[f"column {column.name!r}"] = trouble_in(rows.columns[column.name], rows.row_of)
        for label, part in zip(self.offset_labels, parts, strict=True):
            found_in[f"term {label!r}"] = trouble_in(part, rows.row_of)
        for number, place in enumerate(self.terms.places):
            if not is_usable(ranges.low[place], ranges.high[place]):
                found_in[f"term {self.labels[place]!r}"] = trouble_in(x[:, number], rows.row_of)
        found_in[RESPONSE] = trouble_in(y, rows.row_of)
        return {subject: trouble for subject, trouble in found_in.items() if trouble is not None}

    def _nothing(self, counts: dict[str, int], lacking: Found | None) -> Measured:
        none, width = np.empty((0, self.num_measured)), self.terms.width
        ranges = ranges_of(none[:, :width])
        moments = moments_of(none, np.zeros(self.num_measured))
        kept = np.zeros(1, np.int64)
        return Measured(
            kept, counts, lacking, {}, None, moments, ranges, ranges, ranges_of(none[:, :1]), log_mean_exp(np.zeros(0))
        )
