"""What is asked for, read and checked before any row of the table is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.dates import DatePart, sources_of
from coreset_mcmc.tables.families import Family, family_named
from coreset_mcmc.tables.families.family import CENSORED, TRIALS
from coreset_mcmc.tables.formula import Formula, read_formula
from coreset_mcmc.tables.formula_check import close_to, subject_of
from coreset_mcmc.tables.response import check_sides
from coreset_mcmc.tables.row_filter import Choice, read_filter
from coreset_mcmc.tables.survey import Lumping


@dataclass(frozen=True, eq=False)
class Request:
    """A formula, its family and the rows that count, for a table with certain columns."""

    formula: Formula
    family: Family
    choice: Choice
    lump_rare: int | None

    @classmethod
    def read(
        cls,
        formula: Any,
        columns: Sequence[str],
        family: str = "gaussian",
        link: str | None = None,
        *,
        weights: str | None = None,
        trials: str | int | None = None,
        where: str | None = None,
        lump_rare: int | None = None,
    ) -> Request:
        """Check everything that can be checked without the table."""
        chosen = family_named(family, link)
        parsed = read_formula(formula, columns)
        if trials is not None:
            parsed = _with_trials(parsed, trials, columns)
        check_sides(parsed, chosen)
        if chosen.is_ordered:
            _check_intercept(parsed)
        if weights is not None:
            _check_weights(weights, columns, parsed)
        if lump_rare is not None:
            require(
                isinstance(lump_rare, int) and not isinstance(lump_rare, bool) and lump_rare >= 2,
                "lump_rare",
                got=repr(lump_rare),
                expected="a whole number of at least 2",
                fix="Say how many rows a level needs to keep its own effect, e.g. 50.",
            )
        row_filter = None if where is None else read_filter(where, columns)
        return cls(parsed, chosen, Choice(row_filter, weights), lump_rare)

    @property
    def names(self) -> list[str]:
        """Columns whose values are used, dates as what follows from them."""
        own = [] if self.choice.weights is None else [self.choice.weights]
        return list(dict.fromkeys([*self.formula.columns, *own]))

    @property
    def dates(self) -> tuple[DatePart, ...]:
        of_filter = () if self.choice.where is None else self.choice.where.dates
        return tuple(dict.fromkeys([*self.formula.dates, *of_filter]))

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table that are read."""
        return tuple(sources_of([*self.names, *self.choice.columns], self.dates))

    @property
    def as_levels(self) -> frozenset[str]:
        """Columns whose values are levels, whatever their type."""
        response = self.formula.response_column
        own = {response} if self.family.takes_levels and response is not None else set()
        status = self.formula.parts.other.strip("`") if self.formula.parts.role == CENSORED else ""
        return self.formula.categorical | own | ({status} & {*self.formula.columns})

    @property
    def lumping(self) -> Lumping | None:
        if self.lump_rare is None:
            return None
        return Lumping(self.lump_rare, frozenset(self.formula.predictors), self.formula.numeric)


def _with_trials(formula: Formula, trials: str | int, columns: Sequence[str]) -> Formula:
    require(
        not formula.parts.role,
        "trials",
        got=f"{trials!r}, and {formula.parts.role} in the formula",
        expected="one of them",
        fix="Leave one of them out.",
    )
    is_number = type(trials) is int or (isinstance(trials, str) and trials.isdigit() and trials not in columns)
    if not is_number:
        _check_column("trials", trials, columns)
    trials = str(trials)
    text = trials if is_number or trials.isidentifier() else f"`{trials}`"
    parts = replace(formula.parts, y=formula.response, role=TRIALS, other=text)
    used = () if is_number else (trials,)
    require(
        trials not in formula.predictors and trials != formula.response_column,
        "trials",
        got=f"the column {trials!r}, which the formula uses",
        expected="a column of its own",
        fix="Leave it out of the formula.",
    )
    names = tuple(dict.fromkeys([*formula.columns, *used]))
    return replace(formula, parts=parts, columns=names, of_trials=used)


def _check_weights(weights: Any, columns: Sequence[str], formula: Formula) -> None:
    _check_column("weights", weights, columns)
    require(
        weights != formula.response_column,
        "weights",
        got=f"the response {weights!r}",
        expected="a column of its own",
        fix="Name the column that says how often a row counts.",
    )


def _check_column(subject: str, name: Any, columns: Sequence[str]) -> None:
    if not isinstance(name, str) or name not in columns:
        close = list(close_to(str(name), columns))
        raise InputError(
            subject,
            got=f"{name!r}, which is no column of the table" if isinstance(name, str) else type(name).__name__,
            expected="the name of a column",
            fix=f"Did you mean {' or '.join(map(repr, close))}?" if close else "Check the spelling.",
        )


def _check_intercept(formula: Formula) -> None:
    plain = formula.right.replace(" ", "")
    require(
        not (plain.startswith("0+") or plain == "0" or plain.endswith("-1") or "+0" in plain),
        subject_of(formula.text),
        got="a formula without an intercept for the family cumulative",
        expected="thresholds, which take its place anyway",
        fix="Leave out the 0 or -1.",
    )
