"""The response: values that the family can have, its levels, what success means, trials and censoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import BOOLEAN, LEVELS, Column
from coreset_mcmc.tables.design import DesignTerms, described_alone
from coreset_mcmc.tables.families.family import CENSORED, TRIALS, Family
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.formula_check import subject_of
from coreset_mcmc.tables.moments import Ranges
from coreset_mcmc.tables.terms import Coded, Component, Constant, Plain
from coreset_mcmc.tables.trouble import Found, PlaceOf

MOST_LEVELS_OF_RESPONSE = 50


@dataclass(frozen=True, eq=False)
class Response:
    """How the response follows from a row."""

    family: Family
    y: Component
    extras: tuple[tuple[str, Component], ...] = ()
    levels: tuple[str, ...] = ()
    """Of a response that is one of several."""
    notes: tuple[str, ...] = ()


def subject_of_response(formula: Formula) -> str:
    """How the response is called in messages."""
    return f"response {formula.response!r}"


def check_sides(formula: Formula, family: Family) -> None:
    """Refuse a response whose form is not that of the family, before any row is read."""
    subject = subject_of(formula.text)
    role = formula.parts.role
    require(
        family.takes_trials == (role == TRIALS),
        subject,
        got="no number of trials" if family.takes_trials else f"{formula.parts.other!r} as the number of trials",
        expected=f"{'p(successes, trials)' if family.takes_trials else 'a single response'} for the family "
        f"{family.name}",
        fix="Write p(successes, trials) ~ ..., or name the column: trials='n'."
        if family.takes_trials
        else "Use family='binomial' for successes among trials.",
    )
    require(
        role != CENSORED or family.takes_censored,
        subject,
        got=f"a censored response for the family {family.name}",
        expected="the family exponential or weibull",
        fix="Choose one of them; others can be censored in Bambi (cm.from_bambi).",
    )
    require(
        not formula.parts.order or family.is_ordered,
        subject,
        got=f"levels in an order for the family {family.name}",
        expected="the family cumulative",
        fix="Use family='cumulative', or name the column alone.",
    )


def response_of(design: DesignTerms, columns: Sequence[Column], formula: Formula, family: Family) -> Response:
    """How the response follows from a row, and what a user should know about it."""
    if family.takes_levels:
        return _of_levels(columns, formula, family)
    extras = _extras(columns, formula)
    if design.response is not None:
        return Response(family, design.response, extras)
    column = next(column for column in columns if column.name == formula.response_column)
    if formula.success is not None or column.kind == LEVELS:
        return _outcome(column, formula, family)
    return Response(family, Plain(column.name), extras)


def _extras(columns: Sequence[Column], formula: Formula) -> tuple[tuple[str, Component], ...]:
    role, text = formula.parts.role, formula.parts.other
    if not role:
        return ()
    column = next((column for column in columns if column.name == text.strip("`")), None)
    if role == CENSORED and column is not None:
        return ((role, _status(column, formula)),)
    if column is not None:
        require(
            column.kind != LEVELS,
            subject_of(formula.text),
            got=f"text in the column {column.name!r} of trials",
            expected="whole numbers",
            fix="Turn them into numbers.",
        )
        return ((role, Plain(column.name)),)
    if text.isdigit():
        return ((role, Constant(float(text))),)
    return ((role, described_alone(formula, text, columns)),)


def _status(column: Column, formula: Formula) -> Component:
    """1 where the time is a lower bound."""
    if column.kind == BOOLEAN:
        return Plain(column.name)
    levels = tuple(map(str, column.levels or ()))
    if column.kind == LEVELS and set(levels) <= {"none", "right"}:
        return Coded(column.name, column.levels or (), np.array([[float(level == "right")] for level in levels]))
    is_text = column.kind == LEVELS
    raise InputError(
        subject_of(formula.text),
        got=f"a status {_listed(list(levels))} in {column.name!r}" if is_text else f"numbers in {column.name!r}",
        expected="'none' and 'right' as in Bambi, or booleans, true where the time is a lower bound",
        fix="Only right-censored times are known here: recode the column, or compare it, "
        f"censored({formula.response}, {{{column.name} == ...}}) for what means censored."
        if is_text
        else f"Numbers mean either in different programs: write censored({formula.response}, {{{column.name} == 0}}) "
        "if 0 means censored, {... == 1} if 1 does.",
    )


def _of_levels(columns: Sequence[Column], formula: Formula, family: Family) -> Response:
    subject = subject_of_response(formula)
    column = next((column for column in columns if column.name == formula.response_column), None)
    require(
        column is not None and formula.success is None,
        subject,
        got="an expression or a single level",
        expected=f"a column with {family.expects}",
        fix="Store it as a column first.",
    )
    assert column is not None
    stored = column.levels or ()
    if formula.parts.order:
        stored = _in_given_order(stored, formula)
    elif family.is_ordered:
        require(
            column.kind != LEVELS or column.is_ordered,
            subject,
            got=f"text without an order {_listed(list(map(str, stored)))}",
            expected="levels in an order: numbers, ordered categories, or an order in the formula",
            fix="Write ordered(" + ", ".join([formula.response, *(repr(str(level)) for level in stored[:4])]) + ") ~ "
            "..., from low to high, or use family='categorical'.",
        )
    require(
        len(stored) <= MOST_LEVELS_OF_RESPONSE,
        subject,
        got=f"{len(stored)} levels",
        expected=f"at most {MOST_LEVELS_OF_RESPONSE}",
        fix="Use the family gaussian for numbers, or merge levels.",
    )
    require(
        len(stored) >= 3,
        subject,
        got=f"{len(stored)} levels {_listed(list(map(str, stored)))}",
        expected=family.expects,
        fix=family.instead,
    )
    levels = tuple(map(str, stored))
    note = f"levels of {formula.response} in their order: {_listed(list(levels), 12)}"
    if not family.is_ordered:
        note = f"the reference level of {formula.response} is {levels[0]!r}"
    y = Coded(column.name, tuple(stored), np.arange(len(stored), dtype=float)[:, None])
    return Response(replace(family, num_levels=len(stored)), y, (), levels, (note,))


def _in_given_order(stored: Sequence[object], formula: Formula) -> tuple[object, ...]:
    by_name = {str(level): level for level in stored}
    unknown = [level for level in formula.parts.order if level not in by_name]
    missing = [level for level in by_name if level not in formula.parts.order]
    require(
        not unknown and not missing,
        subject_of_response(formula),
        got=f"levels {_listed(unknown)} that do not occur"
        if unknown
        else f"no place for the levels {_listed(missing)}",
        expected=f"all levels of the column: {_listed(list(by_name), 12)}",
        fix="Levels are written as in the table, with capitals and spaces.",
    )
    return tuple(by_name[level] for level in formula.parts.order)


def _outcome(column: Column, formula: Formula, family: Family) -> Response:
    subject = subject_of_response(formula)
    stored = (column.levels or ()) if column.kind == LEVELS else ()
    levels = [str(level) for level in stored]
    require(
        family.name == "bernoulli",
        subject,
        got=f"text with levels {_listed(levels)}" if levels else f"a level, {formula.success!r}",
        expected=f"numbers for the family {family.name}",
        fix="Use family='bernoulli' for two outcomes, 'categorical' for more, or turn the column into numbers.",
    )
    if formula.success is None:
        require(
            len(levels) == 2,
            subject,
            got=f"{len(levels)} levels {_listed(levels)}",
            expected="two outcomes",
            fix=f"Name the one that counts as success: {formula.response}['level'] ~ ..., or use "
            "family='categorical' for all of them.",
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
    return Response(family, Coded(column.name, stored, is_success[:, None].astype(float)), notes=(note,))


def _listed(levels: Sequence[str], most: int = 6) -> str:
    return f"[{', '.join(levels[:most])}{', ...' if len(levels) > most else ''}]"


def check_response(outside: Found | None, ranges: Ranges, formula: Formula, family: Family, place_of: PlaceOf) -> None:
    """Refuse responses that the family cannot have, or that are all the same."""
    subject = subject_of_response(formula)
    if outside is not None:
        raise InputError(
            subject,
            got=f"{outside.count} rows outside, first {outside.value:g} in {place_of(outside.row)}",
            expected=family.expects,
            fix=family.instead,
        )
    low, high = float(ranges.low[0]), float(ranges.high[0])
    require(
        low < high or family.takes_trials,
        subject,
        got=f"{low:g} in every row",
        expected="values that vary",
        fix="Nothing can be learnt about what explains a constant; check the filter that made the table.",
    )


def separating(of_success: Ranges, of_others: Ranges, family: Family) -> list[int]:
    """Columns that part the outcomes (or, for counts, the rows with any) by themselves.

    Without a prior the coefficient of such a column would be infinite.
    """
    if not (np.all(of_others.low <= of_others.high) and np.all(of_success.low <= of_success.high)):
        return []
    low, high = of_success
    if family.links[0] == "logit":
        is_parted = (of_others.high <= low) | (high <= of_others.low)
    else:
        smallest, largest = of_success.joined(of_others)
        is_parted = (high == smallest) | (low == largest)
    return np.flatnonzero(is_parted).tolist()
