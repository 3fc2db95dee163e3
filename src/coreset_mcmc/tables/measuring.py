"""The passes over a table that a regression is built from: one, or two where levels have to be found first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Task
from coreset_mcmc.tables.cells import without_empty_cells
from coreset_mcmc.tables.columns import (
    BOOLEAN,
    NUMBER,
    WHOLE,
    Column,
    check_missing,
    check_types,
    clean,
    kind_of,
    plain_columns,
)
from coreset_mcmc.tables.design import DesignTerms
from coreset_mcmc.tables.design_source import DesignSource, StandardRows
from coreset_mcmc.tables.first_pass import RESPONSE, FirstPass, Measured
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.frames import FrameRows, FrameSource, scan_frames
from coreset_mcmc.tables.kept_rows import KeptRows
from coreset_mcmc.tables.measured_design import Design, standardised_design
from coreset_mcmc.tables.response import Response, check_response, subject_of_response
from coreset_mcmc.tables.row_filter import Choice
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.start import SquaredResiduals, by_regressors, starting_position
from coreset_mcmc.tables.survey import Lumping, check_some_left, survey
from coreset_mcmc.tables.trouble import raise_first, trouble_in

FIRST_ROWS = 256
"""Rows that tell the types of columns, and give a first estimate of their means."""


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table, who passes over it, and which of its rows count."""

    table: FrameSource
    engine: Engine
    choice: Choice
    drop_missing: bool

    def first(self, names: list[str]) -> pd.DataFrame:
        """Some rows of these columns."""
        return self.table.frame(0, min(self.table.size, FIRST_ROWS), names)


def columns_of(
    rows: TableRows, names: list[str], as_levels: frozenset[str], lumping: Lumping | None
) -> tuple[tuple[Column, ...], list[str]]:
    """What becomes of each column that is used, and notes; a pass over the rows if types do not say it."""
    first = rows.first(names)
    check_types(first)
    rows.choice.places(rows.first([*names, *rows.choice.columns]))
    _check_weights(first, rows.choice.weights)
    columns = plain_columns(first, as_levels)
    if columns is not None:
        return columns, []
    return survey(
        rows.table,
        rows.engine,
        names,
        as_levels,
        drop_missing=rows.drop_missing,
        choice=rows.choice,
        lumping=lumping,
    )


def _check_weights(first: pd.DataFrame, name: str | None) -> None:
    if name is not None and len(first):
        kind, _ = kind_of(first[name].dropna())
        require(
            kind in (NUMBER, BOOLEAN),
            "weights",
            got=f"text in the column {name!r}",
            expected="numbers",
            fix="Name the column that says how often a row counts.",
        )


def all_rows_of(rows: TableRows, columns: tuple[Column, ...]) -> Callable[[], pd.DataFrame]:
    """All clean rows of a table in memory at once."""
    table = rows.table

    def all_rows() -> pd.DataFrame:
        names = [column.name for column in columns]
        frame = table.frame(0, table.size, [*names, *(name for name in rows.choice.columns if name not in names)])
        found = clean(frame, 0, columns, table.place_of, rows.choice.places(frame)[0])
        for column in columns:
            trouble = trouble_in(found.columns[column.name], found.row_of) if column.kind in (NUMBER, WHOLE) else None
            if trouble is not None:
                raise trouble.error(f"column {column.name!r}", table.place_of)
        return found.frame

    return all_rows


class Found(NamedTuple):
    """What one pass tells."""

    terms: DesignTerms
    measured: Measured
    design: Design
    scale: UserScale
    source: DesignSource
    start: dict[str, np.ndarray]
    notes: list[str]


def measure(
    rows: TableRows, formula: Formula, columns: tuple[Column, ...], terms: DesignTerms, response: Response
) -> Found:
    """One pass: what was measured, the design, where its rows come from and where chains start."""
    table, family = rows.table, response.family
    program = FirstPass(
        columns, terms.rows, terms.labels, terms.offset_labels, response.y, family, table.place_of, rows.choice
    )
    names = list(dict.fromkeys([*(column.name for column in columns), *rows.choice.columns]))
    values_per_row = len(terms.rows.places) + terms.rows.num_codes + 1 + bool(terms.offset_labels)
    values_per_row += len(terms.rows.extras) + len(terms.rows.groups.labels)
    frames = FrameRows(table, names, values_per_row)
    shift = program.first_estimate(rows.first(names))
    measured: Measured = scan_frames(frames, rows.engine, Task(program, (shift,)), "moments of the design")
    _check(measured, terms, formula, response, rows)
    terms, measured, shift, notes = without_empty_cells(terms, measured, shift)
    design = standardised_design(terms, measured, shift, family)
    scale = UserScale(
        family,
        design.terms,
        design.means,
        design.scales,
        design.response_mean,
        design.response_scale,
        design.has_intercept,
        terms.rows.groups.terms,
        design.multiplier_scales,
    )
    standard = StandardRows(
        columns,
        terms.rows,
        response.y,
        design.means,
        design.scales,
        design.response_mean,
        design.response_scale,
        scale.predictor_unit,
        design.multiplier_scales,
        rows.choice,
    )
    source = DesignSource(table, standard, KeptRows(frames.layout, measured.kept), is_checked=True)

    def sum_of_squares(coefficients: np.ndarray) -> float:
        task = Task(SquaredResiduals(), by_regressors(terms.rows, design, coefficients))
        return float(Rows(source, rows.engine).scan([task], "residuals of least squares")[0])

    start = starting_position(design, measured, family, sum_of_squares)
    return Found(terms, measured, design, scale, source, start, [*_of_rows(measured, rows), *notes])


def _check(measured: Measured, terms: DesignTerms, formula: Formula, response: Response, rows: TableRows) -> None:
    """Errors in the order in which a user would mend them: missing values, columns, terms, the response."""
    table = rows.table
    num_rows = table.size - measured.left_out
    check_some_left(num_rows, table.size, rows.choice)
    check_missing(measured.missing, measured.lacking, num_rows, table.place_of, drop_missing=rows.drop_missing)
    subjects = [f"column {name!r}" for name in measured.missing]
    subjects += [f"term {label!r}" for label in (*terms.offset_labels, *terms.labels, *terms.rows.groups.labels)]
    raise_first(measured.troubles, [*subjects, *(key for key, _ in terms.rows.extras)], table.place_of)
    if measured.negative is not None:
        raise InputError(
            f"weights {rows.choice.weights!r}",
            got=f"{measured.negative.count} below 0, first {measured.negative.value:g} in "
            f"{table.place_of(measured.negative.row)}",
            expected="numbers of at least 0",
            fix="A weight says how often a row counts; rows with weight 0 are left out.",
        )
    if RESPONSE in measured.troubles:
        raise measured.troubles[RESPONSE].error(subject_of_response(formula), table.place_of)
    check_response(measured.outside, measured.response, formula, response.family, table.place_of)


def _of_rows(measured: Measured, rows: TableRows) -> list[str]:
    """What a user should know about which rows count, and how often."""
    notes = []
    kept, total = int(measured.kept.sum()), measured.moments.num_rows
    filtered = measured.left_out - measured.without_weight
    if filtered:
        notes.append(f"{filtered} of {rows.table.size} rows left out by the filter")
    if measured.lacking is not None:
        notes.append(f"{measured.lacking.count} rows with missing values dropped")
    if rows.choice.weights is None:
        return notes
    if measured.without_weight:
        notes.append(f"{measured.without_weight} rows with weight 0 left out")
    name = rows.choice.weights
    if measured.fractions is None:
        notes.append(f"{name} are frequency weights: {kept} rows count as {total:.0f}")
    else:
        notes.append(
            f"{name} are importance weights, no whole numbers: log-likelihoods are multiplied with them, and intervals "
            f"are those of {total:.4g} rows, the sum of the weights, where there are {kept}"
        )
    return notes
