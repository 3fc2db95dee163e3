"""Rows of another table in the form of a regression's own, for predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.tables.columns import check_types, missing_by_column
from coreset_mcmc.tables.dates import WithDates, sources_of
from coreset_mcmc.tables.design_source import DesignSource, StandardRows, in_memory, missing_in_new_rows
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.formula_check import close_to
from coreset_mcmc.tables.frames import as_table
from coreset_mcmc.tables.kept_rows import all_kept


def rows_to_predict(table: Any, formula: Formula, standard: StandardRows) -> Any:
    """Arrays of a data frame or a mapping of columns, a source of other tables; rows in that form stay as they are."""
    if isinstance(table, Rows | DesignSource) or _is_design(table):
        return table
    table = _frame_of(table) if isinstance(table, Mapping) else table
    rows = as_table(table)
    plain = standard.without_response(formula.to_predict)
    names = sources_of(formula.to_predict, formula.dates)
    for name in names:
        if name not in rows.names:
            close = next(close_to(name, rows.names), None)
            raise InputError(
                "new rows",
                got=f"no column {name!r} among {_few(rows.names)}",
                expected=f"the predictors of {formula.text!r}: {_few(names)}",
                fix=f"Rename {close!r} if that is meant." if close else "Add that column.",
            )
    if formula.dates:
        rows = WithDates(rows, formula.dates)
    names = plain.names
    check_types(rows.frame(0, 1, names))
    schema: Any = plain.schema
    layout = Layout.of(rows.size, sum(int(np.prod(row.shape, initial=1)) for row in schema.values()))
    source = DesignSource(rows, plain, all_kept(layout), is_checked=False)
    if not isinstance(table, pd.DataFrame):
        return source
    missing = missing_by_column(rows.frame(0, rows.size, names), names)
    if missing:
        raise missing_in_new_rows(missing, 0, rows.place_of)
    return in_memory(source)


def _is_design(data: Any) -> bool:
    """Whether these are rows as the model sees them: ``x`` has a line for each row."""
    return isinstance(data, Mapping) and "x" in data and np.ndim(data["x"]) == 2


def _frame_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Columns by name; single values are a table of one row."""
    try:
        is_row = all(np.ndim(values) == 0 for values in columns.values())
        return pd.DataFrame({name: [values] for name, values in columns.items()} if is_row else dict(columns))
    except ValueError as error:
        raise InputError(
            "new rows",
            got=f"columns that are no table ({error})",
            expected="columns of the same length",
            fix="Pass a DataFrame, or arrays with a value for each row.",
        ) from error


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
