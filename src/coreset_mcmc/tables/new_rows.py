"""Rows of another table in the form of a regression's own, for predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.tables.columns import check_missing, check_types, lacking_rows, missing_by_column
from coreset_mcmc.tables.design_source import DesignSource, StandardRows, in_memory
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.frames import FrameSource, as_table
from coreset_mcmc.tables.kept_rows import all_kept


def rows_to_predict(
    table: pd.DataFrame | FrameSource, formula: Formula, standard: StandardRows
) -> dict[str, np.ndarray] | DesignSource:
    """Arrays of a data frame, a source of other tables."""
    rows = as_table(table)
    names = formula.predictors
    lacking = [name for name in names if name not in set(rows.names)]
    require(
        not lacking,
        "new rows",
        got=f"no columns {lacking}",
        expected=f"columns {list(names)}",
        fix="Pass a table with the columns of the first one.",
    )
    check_types(rows.frame(0, 1, names))
    columns = tuple(column for column in standard.columns if column.name in names)
    schema: Any = replace(standard, response=None).schema
    layout = Layout.of(rows.size, sum(int(np.prod(row.shape, initial=1)) for row in schema.values()))
    source = DesignSource(rows, replace(standard, columns=columns, response=None), all_kept(layout), is_checked=False)
    if not isinstance(table, pd.DataFrame):
        return source
    missing = missing_by_column(rows.frame(0, rows.size, names), names)
    counts = {name: int(lacks.sum()) for name, lacks in missing.items()}
    check_missing(counts, lacking_rows(missing, 0), rows.size, rows.place_of, drop_missing=False)
    return in_memory(source)
