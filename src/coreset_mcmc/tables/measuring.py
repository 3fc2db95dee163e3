"""The passes over a table that a regression is built from: one, or two where levels have to be found first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Task
from coreset_mcmc.tables.columns import NUMBER, WHOLE, Column, check_missing, check_types, clean, plain_columns
from coreset_mcmc.tables.design import DesignTerms
from coreset_mcmc.tables.design_source import DesignSource, StandardRows
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.first_pass import RESPONSE, FirstPass, Measured
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.frames import FrameRows, FrameSource, scan_frames
from coreset_mcmc.tables.kept_rows import KeptRows
from coreset_mcmc.tables.measured_design import Design, standardised_design
from coreset_mcmc.tables.response import check_response, subject_of_response
from coreset_mcmc.tables.start import SquaredResiduals, by_regressors, starting_position
from coreset_mcmc.tables.survey import survey
from coreset_mcmc.tables.terms import Component
from coreset_mcmc.tables.trouble import raise_first, trouble_in

FIRST_ROWS = 256
"""Rows that tell the types of columns, and give a first estimate of their means."""


def columns_of(table: FrameSource, engine: Engine, formula: Formula, *, drop_missing: bool) -> tuple[Column, ...]:
    """What becomes of each column that the formula uses; a pass over the rows if types do not say it."""
    first = table.frame(0, min(table.size, FIRST_ROWS), formula.columns)
    check_types(first)
    columns = plain_columns(first, formula.categorical)
    if columns is None:
        columns = survey(table, engine, formula.columns, formula.categorical, drop_missing=drop_missing)
    return columns


def all_rows_of(table: FrameSource, columns: tuple[Column, ...]) -> Callable[[], pd.DataFrame]:
    """All clean rows of a table in memory at once."""

    def all_rows() -> pd.DataFrame:
        rows = clean(table.frame(0, table.size, [column.name for column in columns]), 0, columns, table.place_of)
        for column in columns:
            trouble = trouble_in(rows.columns[column.name], rows.row_of) if column.kind in (NUMBER, WHOLE) else None
            if trouble is not None:
                raise trouble.error(f"column {column.name!r}", table.place_of)
        return rows.frame

    return all_rows


def measure(
    table: FrameSource,
    engine: Engine,
    formula: Formula,
    columns: tuple[Column, ...],
    terms: DesignTerms,
    response: Component,
    family: Family,
    *,
    drop_missing: bool,
) -> tuple[Measured, Design, DesignSource, dict[str, np.ndarray]]:
    """One pass: what was measured, the design, where its rows come from and where chains start."""
    names = [column.name for column in columns]
    program = FirstPass(columns, terms.rows, terms.labels, terms.offset_labels, response, family, table.place_of)
    values_per_row = len(terms.rows.places) + len(terms.rows.factors) + 1 + bool(terms.offset_labels)
    rows = FrameRows(table, names, values_per_row)
    shift = program.first_estimate(table.frame(0, min(table.size, FIRST_ROWS), names))
    measured: Measured = scan_frames(rows, engine, Task(program, (shift,)), "moments of the design")
    kept = KeptRows(rows.layout, measured.kept)
    _check(measured, terms, formula, family, table, drop_missing=drop_missing)
    design = standardised_design(terms, measured, shift, family)
    standard = StandardRows(
        columns, terms.rows, response, design.means, design.scales, design.response_mean, design.response_scale
    )
    source = DesignSource(table, standard, kept, is_checked=True)

    def sum_of_squares(coefficients: np.ndarray) -> float:
        task = Task(SquaredResiduals(), by_regressors(terms.rows, design, coefficients))
        return float(Rows(source, engine).scan([task], "residuals of least squares")[0])

    return measured, design, source, starting_position(design, measured, shift, family, sum_of_squares)


def _check(
    measured: Measured,
    terms: DesignTerms,
    formula: Formula,
    family: Family,
    table: FrameSource,
    *,
    drop_missing: bool,
) -> None:
    """Errors in the order in which a user would mend them: missing values, columns, terms, the response."""
    check_missing(measured.missing, measured.lacking, table.size, table.place_of, drop_missing=drop_missing)
    subjects = [f"column {name!r}" for name in formula.columns]
    subjects += [f"term {label!r}" for label in (*terms.offset_labels, *terms.labels)]
    raise_first(measured.troubles, subjects, table.place_of)
    if RESPONSE in measured.troubles:
        raise measured.troubles[RESPONSE].error(subject_of_response(formula), table.place_of)
    check_response(measured.outside, measured.response, formula, family, table.place_of)
