"""The response: values that the family can have, and what success means for two outcomes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import LEVELS, Column
from coreset_mcmc.tables.design import DesignTerms
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.moments import Ranges
from coreset_mcmc.tables.terms import Coded, Component, Plain
from coreset_mcmc.tables.trouble import Found, PlaceOf


def subject_of_response(formula: Formula) -> str:
    """How the response is called in messages."""
    return f"response {formula.response!r}"


def response_of(
    design: DesignTerms, columns: Sequence[Column], formula: Formula, family: Family
) -> tuple[Component, list[str]]:
    """How the response follows from a row, and what a user should know about it."""
    if design.response is not None:
        return design.response, []
    column = next(column for column in columns if column.name == formula.response_column)
    if formula.success is not None or column.kind == LEVELS:
        return _outcome(column, formula, family)
    return Plain(column.name), []


def _outcome(column: Column, formula: Formula, family: Family) -> tuple[Component, list[str]]:
    subject = subject_of_response(formula)
    stored = (column.levels or ()) if column.kind == LEVELS else ()
    levels = [str(level) for level in stored]
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
    is_success = np.arange(len(levels)) == levels.index(success)
    note = f"the success level of {formula.response_column} is {success!r}"
    return Coded(column.name, stored, is_success[:, None].astype(float)), [note]


def _listed(levels: list[str]) -> str:
    return f"[{', '.join(levels[:6])}{', ...' if len(levels) > 6 else ''}]"


def outside_support(y: np.ndarray, family: Family) -> np.ndarray | None:
    """Which responses the family cannot have; None if it can have any."""
    outside: np.ndarray | None = None
    if family.name == "bernoulli":
        outside = (y != 0) & (y != 1)
    elif family.link == "log":
        outside = (y < 0) | (y != np.floor(y))
    return outside


def check_response(outside: Found | None, ranges: Ranges, formula: Formula, family: Family, place_of: PlaceOf) -> None:
    """Refuse responses that the family cannot have, or that are all the same."""
    subject = subject_of_response(formula)
    if outside is not None:
        is_binary = family.name == "bernoulli"
        raise InputError(
            subject,
            got=f"{outside.count} rows outside, first {outside.value:g} in {place_of(outside.row)}",
            expected="0 or 1 in every row" if is_binary else "counts: whole numbers of at least 0",
            fix="Recode it, e.g. {y > 0} or y['yes'] for text."
            if is_binary
            else "Use the family gaussian or t for other numbers.",
        )
    low, high = float(ranges.low[0]), float(ranges.high[0])
    require(
        low < high,
        subject,
        got=f"{low:g} in every row",
        expected="values that vary",
        fix="Nothing can be learnt about what explains a constant; check the filter that made the table.",
    )


def separating(of_success: Ranges, of_others: Ranges, family: Family) -> list[int]:
    """Columns that part the outcomes (or, for counts, the rows with any) by themselves.

    Without a prior the coefficient of such a column would be infinite.
    """
    if family.has_scale or not np.all(of_others.low <= of_others.high):
        return []
    low, high = of_success
    if family.name == "bernoulli":
        is_parted = (of_others.high <= low) | (high <= of_others.low)
    else:
        smallest, largest = of_success.joined(of_others)
        is_parted = (high == smallest) | (low == largest)
    return np.flatnonzero(is_parted).tolist()
