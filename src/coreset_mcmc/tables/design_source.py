"""The rows of a regression, evaluated from its table as they are read.

What comes out is what a table in memory becomes at once: standardised columns in float64, to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.memory import require_within_limit
from coreset_mcmc.core.types import Batch
from coreset_mcmc.core.watching import tell
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.tables.columns import (
    NUMBER,
    WHOLE,
    CleanRows,
    Column,
    clean,
    complete_places,
    missing_by_column,
)
from coreset_mcmc.tables.factors import CODES
from coreset_mcmc.tables.families.family import TRIALS
from coreset_mcmc.tables.frames import FrameSource
from coreset_mcmc.tables.groups import MULTIPLIERS
from coreset_mcmc.tables.kept_rows import KeptRows
from coreset_mcmc.tables.row_filter import ALL, Choice
from coreset_mcmc.tables.row_terms import RowTerms, total_offset
from coreset_mcmc.tables.terms import Component, expressions_in
from coreset_mcmc.tables.trouble import PlaceOf, trouble_in


@dataclass(frozen=True, eq=False)
class StandardRows:
    """From clean rows to what a model sees."""

    columns: tuple[Column, ...]
    terms: RowTerms
    response: Component | None
    """None for new rows, of which the response is not known."""
    means: np.ndarray
    scales: np.ndarray
    response_mean: float
    response_scale: float
    predictor_unit: float
    multiplier_scales: np.ndarray
    choice: Choice = ALL

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*(column.name for column in self.columns), *self.choice.columns]))

    def without_response(self, names: Collection[str]) -> StandardRows:
        """For new rows, of which the response is not known, with these columns; trials belong to a prediction."""
        extras = tuple((key, part) for key, part in self.terms.extras if key == TRIALS)
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name in names),
            terms=replace(self.terms, extras=extras),
            response=None,
            choice=ALL,
        )

    @property
    def schema(self) -> dict[str, Any]:
        number = jax.ShapeDtypeStruct((), np.float64)
        schema = {"x": jax.ShapeDtypeStruct((len(self.terms.places),), np.float64)}
        if self.terms.num_codes:
            schema[CODES] = jax.ShapeDtypeStruct((self.terms.num_codes,), np.int32)
        if self.terms.groups.labels:
            schema[MULTIPLIERS] = jax.ShapeDtypeStruct((len(self.terms.groups.labels),), np.float64)
        if self.response is not None:
            schema["y"] = number
        schema |= dict.fromkeys((key for key, _ in self.terms.extras), number)
        return {**schema, "offset": number} if self.terms.offsets else schema

    def batch(self, rows: CleanRows) -> dict[str, np.ndarray]:
        if not rows.count:
            return {name: np.empty((0, *row.shape), row.dtype) for name, row in self.schema.items()}
        with np.errstate(all="ignore"):
            x = self.terms.design(rows)
            np.subtract(x, self.means[self.terms.places], out=x)
            np.divide(x, self.scales[self.terms.places], out=x)
            batch = {"x": x}
            if self.terms.num_codes:
                batch[CODES] = self.terms.codes(rows)
            if self.terms.groups.labels:
                batch[MULTIPLIERS] = self.terms.groups.values(rows) / self.multiplier_scales
            if self.response is not None:
                y = np.array(self.response.values(rows)[:, 0], float)
                batch["y"] = (y - self.response_mean) / self.response_scale
            offset = total_offset(self.terms.offset_parts(rows))
            if offset is not None:
                batch["offset"] = offset / self.predictor_unit
            batch |= self.terms.extra_values(rows)
        return batch


class DesignSource(Source):
    """Rows of a table in the form of ``Regression.data``.

    Args:
        table: where they are read from.
        standard: how they are evaluated.
        kept: which of them count.
        is_checked: whether they were looked at before; if not, each run is checked as it is read.
    """

    def __init__(self, table: FrameSource, standard: StandardRows, kept: KeptRows, *, is_checked: bool) -> None:
        self.table, self.standard, self.kept, self.is_checked = table, standard, kept, is_checked

    @property
    def size(self) -> int:
        return self.kept.size

    @property
    def schema(self) -> Batch:
        return self.standard.schema

    def read(self, start: int, stop: int) -> Batch:
        return next(iter(self._runs([(start, stop)], None)))

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        spans = [layout.rows_of_leaf(number) for number in numbers]
        for number, batch in zip(numbers, self._runs(spans, (layout, numbers)), strict=True):
            yield Leaf(layout, number, batch)

    def place_of(self, row: int) -> str:
        return self.table.place_of(int(self.table_row_numbers(np.array([row]))[0]))

    def fingerprint(self, *, full: bool = False) -> Any:
        standard = self.standard
        return {
            "table": self.table.fingerprint(full=full),
            "rows": self.size,
            "columns": [(column.name, column.kind, list(map(str, column.levels or ()))) for column in standard.columns],
            "means": standard.means,
            "scales": standard.scales,
            "response": [standard.response_mean, standard.response_scale],
            "where": "" if standard.choice.where is None else standard.choice.where.text,
            "extras": [key for key, _ in standard.terms.extras],
        }

    def table_row_numbers(self, indices: np.ndarray) -> np.ndarray:
        """Numbers in the table of these rows of the design."""
        indices = np.asarray(indices, np.int64)
        if not self.kept.num_dropped:
            return indices
        leaves = self.kept.leaves_of(indices)
        numbers = np.empty_like(indices)
        for leaf, frame in self._table_leaves(np.unique(leaves).tolist()):
            inside = leaves == leaf
            places = self._complete_places(frame, leaf)
            start = self.kept.layout.rows_of_leaf(leaf)[0]
            numbers[inside] = start + places[indices[inside] - self.kept.starts[leaf]]
        return numbers

    def table_rows(self, indices: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
        """Rows of the table, in this order, with their numbers as index; only leaves that hold some are read."""
        numbers = self.table_row_numbers(indices)
        layout = self.kept.layout
        leaves = numbers // layout.leaf_rows
        parts = []
        for leaf, frame in self.table.frames(layout, np.unique(leaves).tolist(), names):
            inside = np.flatnonzero(leaves == leaf)
            part = frame.iloc[numbers[inside] - layout.rows_of_leaf(leaf)[0]]
            parts.append(part.set_axis(pd.Index(inside), axis=0))
        whole = pd.concat(parts) if parts else self.table.frame(0, 1, names).iloc[:0]
        return whole.sort_index().set_axis(pd.Index(numbers, name="row"), axis=0)

    def _runs(
        self, spans: Sequence[tuple[int, int]], leaves: tuple[Layout, Sequence[int]] | None
    ) -> Iterator[dict[str, np.ndarray]]:
        """Batches of runs of rows in ascending order."""
        if self.kept.num_dropped:
            yield from self._runs_of_kept(spans)
        elif leaves is None:
            for start, stop in spans:
                yield self._batch(self.table.frame(start, stop, self.standard.names), start, stop - start)
        else:
            for number, frame in self.table.frames(*leaves, self.standard.names):
                start, stop = leaves[0].rows_of_leaf(number)
                yield self._batch(frame, start, stop - start)

    def _runs_of_kept(self, spans: Sequence[tuple[int, int]]) -> Iterator[dict[str, np.ndarray]]:
        """The same from leaves of the table that lost rows: as many are held as a run touches."""
        starts, counts, layout = self.kept.starts, self.kept.counts, self.kept.layout
        needed = [self.kept.leaves_between(*span) for span in spans]
        arriving = self._table_leaves(sorted({leaf for leaves in needed for leaf in leaves}))
        held: dict[int, dict[str, np.ndarray]] = {}
        for (start, stop), leaves in zip(spans, needed, strict=True):
            held = {leaf: batch for leaf, batch in held.items() if leaf >= leaves[0]}
            while leaves[-1] not in held:
                leaf, frame = next(arriving)
                held[leaf] = self._batch(frame, layout.rows_of_leaf(leaf)[0], int(counts[leaf]))
            pieces = [_cut(held[leaf], start - int(starts[leaf]), stop - int(starts[leaf])) for leaf in leaves]
            yield pieces[0] if len(pieces) == 1 else jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)

    def _table_leaves(self, numbers: Sequence[int]) -> Iterator[tuple[int, pd.DataFrame]]:
        return iter(self.table.frames(self.kept.layout, numbers, self.standard.names))

    def _complete_places(self, frame: pd.DataFrame, leaf: int) -> np.ndarray:
        chosen = self.standard.choice.places(frame)[0]
        some = frame if chosen is None else frame.iloc[chosen]
        places = complete_places(missing_by_column(some, (column.name for column in self.standard.columns)))
        if chosen is None:
            places = np.arange(len(frame)) if places is None else places
        else:
            places = chosen if places is None else chosen[places]
        self._check_count(len(places), int(self.kept.counts[leaf]))
        return places

    def _batch(self, frame: pd.DataFrame, start: int, count: int) -> dict[str, np.ndarray]:
        chosen = self.standard.choice.places(frame)[0]
        rows = clean(frame, start, self.standard.columns, self.table.place_of, chosen)
        if not self.is_checked:
            _check_new_rows(frame, rows, self.standard)
        self._check_count(rows.count, count)
        return self.standard.batch(rows)

    def _check_count(self, found: int, expected: int) -> None:
        require(
            found == expected,
            "table",
            got=f"{found} rows that count where there were {expected}",
            expected="the rows that the model was built with",
            fix="The table has changed meanwhile: build the model again.",
        )


def _cut(batch: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
    return {name: array[max(start, 0) : stop] for name, array in batch.items()}


def in_memory(source: Source) -> dict[str, np.ndarray]:
    """All rows at once, put in place leaf by leaf."""
    schema: Any = source.schema
    require_within_limit(
        "the design",
        source.size * source.bytes_per_row,
        fix="Leave the rows on disk: cm.scan_parquet(path), or --engine stream on the command line.",
    )
    whole = {name: np.empty((source.size, *row.shape), row.dtype) for name, row in schema.items()}
    layout = source.layout
    tell("building the design", 0, source.size)
    for leaf in source.leaves(layout, range(layout.num_leaves)):
        batch: Any = leaf.batch
        for name, array in whole.items():
            array[leaf.start : leaf.stop] = batch[name]
        tell("building the design", leaf.stop, source.size)
    return whole


def _check_new_rows(frame: pd.DataFrame, rows: CleanRows, standard: StandardRows) -> None:
    columns = standard.columns
    if rows.places is not None:
        missing = missing_by_column(frame, (column.name for column in columns))
        raise missing_in_new_rows(missing, rows.start, rows.place_in_table)
    for column in columns:
        if column.kind in (NUMBER, WHOLE):
            trouble = trouble_in(rows.columns[column.name], rows.row_of)
            if trouble is not None:
                raise trouble.error(f"column {column.name!r}", rows.place_in_table)
    for expression in expressions_in(
        (*standard.terms.dense, *standard.terms.offsets, *standard.terms.groups.multipliers)
    ):
        for values in np.asarray(expression.values(rows), float).T:
            trouble = trouble_in(values, rows.row_of)
            if trouble is not None:
                raise trouble.error(f"term {expression.call.name!r}", rows.place_in_table)


def missing_in_new_rows(missing: Mapping[str, np.ndarray], start: int, place_of: PlaceOf) -> InputError:
    """The error about rows that lack a value, of a run that begins with row ``start`` of the table."""
    first = start + int(np.argmax(np.logical_or.reduce(list(missing.values()))))
    listed = ", ".join(f"{name}: {int(lacks.sum())}" for name, lacks in missing.items())
    return InputError(
        "new rows",
        got=f"missing values ({listed}; first in {place_of(first)})",
        expected="a value in every column that the formula uses",
        fix="Leave those rows out, or fill them in.",
    )
