"""The response: values that the family can have, and what success means for two outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import check_numbers
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.passes import column_ranges


def response_values(
    column: Any, formula: Formula, family: Family, row_numbers: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """The response as numbers (N,), and what a user should know about it."""
    subject = f"response {formula.response!r}"
    notes: list[str] = []
    if formula.success is not None or isinstance(column, pd.Categorical):
        y, notes = _outcomes(column, formula, family, subject)
    else:
        values = np.asarray(column)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        require(
            values.ndim == 1 and (values.dtype == bool or np.issubdtype(values.dtype, np.number)),
            subject,
            got=f"shape {values.shape}, dtype {values.dtype}",
            expected="one number for each row",
            fix="Use a column, np.log(y), {y / 2} or y['level'].",
        )
        y = values.astype(float)
    check_numbers(subject, y, row_numbers)
    _check_support(y, family, subject, row_numbers)
    require(
        bool(y.min() < y.max()),
        subject,
        got=f"{y[0]:g} in every row",
        expected="values that vary",
        fix="Nothing can be learnt about what explains a constant; check the filter that made the table.",
    )
    return y, notes


def _outcomes(column: Any, formula: Formula, family: Family, subject: str) -> tuple[np.ndarray, list[str]]:
    levels = [str(level) for level in column.categories] if isinstance(column, pd.Categorical) else []
    require(
        family.name == "bernoulli",
        subject,
        got=f"text with levels {_listed(levels)}" if levels else f"a level, {formula.success!r}",
        expected=f"numbers for the family {family.name}",
        fix="Use family='bernoulli' for two outcomes, or turn the column into numbers.",
    )
    if formula.success is None:
        require(
            len(levels) == 2,
            subject,
            got=f"{len(levels)} levels {_listed(levels)}",
            expected="two outcomes",
            fix=f"Name the one that counts as success: {formula.response}['level'] ~ ...",
        )
    elif formula.success not in levels:
        raise InputError(
            subject,
            got=f"{formula.success!r}, which does not occur" if levels else "a level of a column of numbers",
            expected=f"one of the levels {_listed(levels)}" if levels else "a column of text",
            fix="Levels are written as in the table, with capitals and spaces; numbers are compared as {y == 1}."
            if not levels
            else "Levels are written as in the table, with capitals and spaces.",
        )
    success = levels[-1] if formula.success is None else formula.success
    y = (column.codes == levels.index(success)).astype(float)
    return y, [f"the success level of {formula.response_column} is {success!r}"]


def _listed(levels: list[str]) -> str:
    return f"[{', '.join(levels[:6])}{', ...' if len(levels) > 6 else ''}]"


def _check_support(y: np.ndarray, family: Family, subject: str, row_numbers: np.ndarray) -> None:
    if family.name == "bernoulli":
        inside = (y == 0) | (y == 1)
        expected, fix = "0 or 1 in every row", "Recode it, e.g. {y > 0} or y['yes'] for text."
    elif family.link == "log":
        inside = (y >= 0) & (y == np.floor(y))
        expected, fix = "counts: whole numbers of at least 0", "Use the family gaussian or t for other numbers."
    else:
        return
    if not inside.all():
        first = int(np.argmin(inside))
        raise InputError(
            subject,
            got=f"{int((~inside).sum())} rows outside, first {y[first]:g} in row {row_numbers[first]}",
            expected=expected,
            fix=fix,
        )


def separating(x: np.ndarray, y: np.ndarray, family: Family) -> list[int]:
    """Columns that part the outcomes (or, for counts, the rows with any) by themselves: one pass.

    Without a prior the coefficient of such a column would be infinite.
    """
    if family.has_scale:
        return []
    is_success = y > 0
    if is_success.all():
        return []
    low, high = column_ranges(x, is_success)
    if family.name == "bernoulli":
        low_of_others, high_of_others = column_ranges(x, ~is_success)
        is_parted = (high_of_others <= low) | (high <= low_of_others)
    else:
        smallest, largest = column_ranges(x)
        is_parted = (high == smallest) | (low == largest)
    return np.flatnonzero(is_parted).tolist()
