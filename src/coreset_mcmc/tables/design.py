"""From a formula and the columns of a table to the terms of a design.

``formulae`` evaluates the formula once, on a few made-up rows in which every level occurs, and so says which columns
the design has. Transforms that learn from all rows (``scale``, ``poly``, ``bs``) have to see those instead, and can
therefore be used with tables in memory only.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc.tables.calls_by_leaf import environment_by_leaf
from coreset_mcmc.tables.columns import BOOLEAN, LEVELS, Column
from coreset_mcmc.tables.factors import coded_term
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.formula_check import environment, subject_of
from coreset_mcmc.tables.groups import GroupFactor, GroupTerm, GroupTerms, check_groups
from coreset_mcmc.tables.row_terms import RowTerms
from coreset_mcmc.tables.terms import Coded, Component, Expression, Plain, Product, as_matrix, evaluated

AllRows = Callable[[], pd.DataFrame]


@dataclass(frozen=True)
class Term:
    """One term of the formula: one variable of the posterior."""

    name: str
    columns: slice
    """Which columns of the design are its."""
    levels: tuple[str, ...] | None
    """Names of its columns, for a term that is a vector."""
    reference: str | None = None
    """The level that the others are compared with, for a factor of which one has no column."""
    is_categorical: bool = False
    """Whether it has levels only, and no numbers."""
    is_interaction: bool = False


@dataclass(frozen=True, eq=False)
class DesignTerms:
    """What a formula means for a table."""

    has_intercept: bool
    terms: tuple[Term, ...]
    labels: tuple[str, ...]
    """The name of each column."""
    offset_labels: tuple[str, ...]
    response: Component | None
    """A response that is an expression."""
    rows: RowTerms


def made_up_rows(columns: Sequence[Column]) -> pd.DataFrame:
    """A few rows with the types of the columns and all their levels."""
    count = max([2, *(len(column.levels or ()) for column in columns)])
    values: dict[str, Any] = {}
    for column in columns:
        if column.kind == LEVELS:
            codes = np.arange(count) % len(column.levels or ())
            values[column.name] = pd.Categorical.from_codes(codes, pd.Index(list(column.levels or ())), ordered=True)
        elif column.levels is not None:
            values[column.name] = np.resize(np.array(column.levels), count)
        else:
            values[column.name] = np.arange(count) % 2 == 0 if column.kind == BOOLEAN else np.linspace(1.0, 2.0, count)
    return pd.DataFrame(values)


def check_by_rows(formula: Formula) -> None:
    """Refuse what cannot be evaluated for some rows of a table, before any of them is read."""
    require(
        not formula.stateful,
        subject_of(formula.text),
        got=f"{', '.join(sorted(formula.stateful))}, which depends on all rows at once",
        expected="terms that follow from one row at a time, because the table is not in memory",
        fix="Columns are centred and scaled anyway, so center, scale and standardize can be left out; powers are "
        "written as {x ** 2}. Other such columns have to be computed and stored first.",
    )


def build_design(formula: Formula, columns: Sequence[Column], all_rows: AllRows | None) -> DesignTerms:
    """Terms of the right-hand side, and of the left one if it is an expression.

    ``all_rows`` gives the clean rows of a table that is in memory.
    """
    if formula.stateful and all_rows is not None:
        return _design_terms(formula, _described(formula, all_rows()), columns)
    description = _described(formula, made_up_rows(columns))
    unsettled = _levels_of_expressions(description)
    if unsettled:
        require(
            all_rows is not None,
            subject_of(formula.text),
            got=f"{unsettled[0]}, which makes levels",
            expected="levels that are a column, because the table is not in memory",
            fix="Compute and store that column first, or compare: {x > 3}.",
        )
        assert all_rows is not None
        description = _described(formula, all_rows())
    return _design_terms(formula, description, columns)


def _described(formula: Formula, frame: Any) -> Any:
    """The terms, each with factors of its own: ``a / b`` would share them, and a factor is coded for one term."""
    from formulae import model_description

    text = formula.right if formula.response_column is not None else formula.text
    space = environment()

    def describe() -> Any:
        description = model_description(text)
        for term in description.common_terms:
            if term.kind != "intercept":
                term.components = deepcopy(term.components)
        for term in description.group_terms:
            term.factor = deepcopy(term.factor)
            term.expr = deepcopy(term.expr)
        description.eval(frame, space)
        if description.response is not None:
            description.response.set_type(frame, space)
            description.response.set_data()
        return description

    with contextlib.redirect_stdout(io.StringIO()):
        return evaluated(subject_of(formula.text), describe)


def _levels_of_expressions(description: Any) -> list[str]:
    """Expressions with text as their value, whose levels are known once all rows are."""
    from formulae.categorical import CategoricalBox

    found = []
    responses = [] if description.response is None else [description.response.term]
    expressions = [term.expr for term in description.group_terms]
    for term in [*description.common_terms, *responses, *expressions]:
        for component in getattr(term, "components", []):
            data = component._intermediate_data
            is_ordered = isinstance(data, CategoricalBox) or getattr(getattr(data, "dtype", None), "ordered", False)
            if component.kind == "categoric" and not is_ordered:
                found.append(component.name)
    return found


def _design_terms(formula: Formula, description: Any, columns: Sequence[Column]) -> DesignTerms:
    common = description.common_terms
    has_intercept = any(term.kind == "intercept" for term in common)
    of_design = [term for term in common if term.kind not in ("intercept", "offset")]
    offsets = [term for term in common if term.kind == "offset"]
    require(
        has_intercept or bool(of_design) or bool(description.group_terms),
        subject_of(formula.text),
        got="neither an intercept nor a predictor",
        expected="at least one term",
        fix="Write 'y ~ 1' for an intercept alone.",
    )
    terms, labels = _named(of_design)
    response = None
    if description.response is not None:
        _check_response(description.response.term.data, formula)
        response = _component(description.response.term, columns)
    components = [_component(term, columns) for term in of_design]
    coded = [coded_term(component, term.columns) for component, term in zip(components, terms, strict=True)]
    rows = RowTerms(
        tuple(component for component, factor in zip(components, coded, strict=True) if factor is None),
        len(labels),
        tuple(_component(term, columns) for term in offsets),
        tuple(factor for factor in coded if factor is not None),
        group_terms_of(description, columns),
    )
    names = tuple(term.name for term in offsets)
    terms = [replace(term, reference=_reference(part)) for term, part in zip(terms, components, strict=True)]
    return DesignTerms(has_intercept, tuple(terms), tuple(labels), names, response, rows)


def _reference(component: Component) -> str | None:
    if not isinstance(component, Coded):
        return None
    without = np.flatnonzero(~component.matrix.any(axis=1))
    return str(component.levels[without[0]]) if len(without) else None


def _check_response(values: Any, formula: Formula) -> None:
    array = np.asarray(values)
    is_column = array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    require(
        is_column and (array.dtype == bool or np.issubdtype(array.dtype, np.number)),
        f"response {formula.response!r}",
        got=f"shape (N, {array.shape[1]})" if array.ndim == 2 else f"dtype {array.dtype}",
        expected="one number for each row",
        fix="Use a column, np.log(y), {y / 2} or y['level'].",
    )


def plain_name(name: str) -> str:
    """A slash in the name of a variable would be a group of the result."""
    return name.replace("/", "div")


def _named(of_design: list[Any]) -> tuple[list[Term], list[str]]:
    """Places and names of the columns of each term."""
    terms: list[Term] = []
    labels: list[str] = []
    for term in of_design:
        width = as_matrix(term.data).shape[1]
        require(
            width > 0,
            f"term {term.name!r}",
            got="the same level in every row",
            expected="at least two levels",
            fix="Leave it out; the intercept takes its place.",
        )
        levels = term.levels or ([str(number) for number in range(width)] if width > 1 else None)
        place = slice(len(labels), len(labels) + width)
        kinds = {component.kind for component in term.components}
        is_levels, is_product = kinds == {"categoric"}, len(term.components) > 1
        terms.append(Term(plain_name(term.name), place, tuple(levels) if levels else None, None, is_levels, is_product))
        labels.extend(term.labels)
    return terms, labels


def group_terms_of(description: Any, columns: Sequence[Column]) -> GroupTerms:
    """The terms (x|g) of a description."""
    factors: dict[str, GroupFactor] = {}
    multipliers: list[Component] = []
    labels: list[str] = []
    terms = []
    for term in description.group_terms:
        name = term.factor.name
        if name not in factors:
            parts = tuple(_grouping(part, columns) for part in term.factor.components)
            factors[name] = GroupFactor(plain_name(name), parts)
        own: tuple[int | None, ...] = (None,)
        levels, expression = None, "1"
        if term.expr.kind != "intercept":
            width = as_matrix(term.expr.data).shape[1]
            own = tuple(range(len(labels), len(labels) + width))
            levels = term.expr.levels or ([str(number) for number in range(width)] if width > 1 else None)
            labels += term.expr.labels
            expression = plain_name(term.expr.name)
            multipliers.append(_component(term.expr, columns))
        place, known = list(factors).index(name), None if levels is None else tuple(map(str, levels))
        terms.append(GroupTerm(plain_name(term.name), place, own, expression, known))
    check_groups(tuple(factors.values()))
    return GroupTerms(tuple(factors.values()), tuple(multipliers), tuple(labels), tuple(terms))


def _grouping(component: Any, columns: Sequence[Column]) -> Coded:
    """The levels of a column as they were found in the rows."""
    column = next(column for column in columns if column.name == component.name)
    levels = column.levels if column.levels is not None else (False, True)
    return Coded(column.name, tuple(levels), np.eye(len(levels)))


def described_alone(formula: Formula, text: str, columns: Sequence[Column]) -> Component:
    """What a text means that is no part of the right-hand side: the number of trials, the status of censoring."""
    from formulae import model_description

    frame, space = made_up_rows(columns), environment()

    def describe() -> Any:
        description = model_description(f"0 + {text}")
        description.eval(frame, space)
        return description

    with contextlib.redirect_stdout(io.StringIO()):
        description = evaluated(subject_of(formula.text), describe)
    return _component(description.common_terms[0], columns)


def _component(term: Any, columns: Sequence[Column]) -> Component:
    """A term of ``formulae`` without the rows that it holds."""
    factors = tuple(_factor(component, columns) for component in term.components)
    term.data = None
    return factors[0] if len(factors) == 1 else Product(factors)


def _factor(component: Any, columns: Sequence[Column]) -> Component:
    from formulae.terms.call_resolver import LazyVariable
    from formulae.terms.variable import Variable

    is_variable = isinstance(component, Variable)
    component.value = None
    if component.kind == "offset":
        component._intermediate_data.x = None
    else:
        component._intermediate_data = None
    if component.kind == "categoric":
        is_coded = not is_variable and component.call.callee in ("C", "S", "T")
        argument = component.call.args[0] if is_coded else None
        if is_variable or isinstance(argument, LazyVariable):
            name = component.name if argument is None else argument.name
            return Coded(name, tuple(component.levels), np.asarray(component.contrast_matrix.matrix, float))
    if is_variable:
        return Plain(component.name)
    component.env = environment_by_leaf(environment(), columns)
    return Expression(component)
