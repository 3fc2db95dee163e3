"""From clean rows and a formula to a standardised design.

With an intercept each column j becomes (x_j - m_j) / s_j with its mean and standard deviation; without one it is
divided by its root mean square alone. Dummies, interactions, splines and polynomials are all columns here.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import LARGEST_VALUE, check_numbers
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.formula_check import environment, subject_of
from coreset_mcmc.tables.passes import centre, column_ranges, gram, scale

SMALLEST_EIGENVALUE = 1e-12
"""Of the correlation matrix of the design: below this its columns are the same up to rounding."""


@dataclass(frozen=True)
class Term:
    """One term of the formula: one variable of the posterior."""

    name: str
    columns: slice
    """Which columns of the design are its."""
    levels: tuple[str, ...] | None
    """Names of its columns, for a term that is a vector."""


@dataclass(frozen=True, eq=False)
class Design:
    """The standardised columns and how they came about."""

    x: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    has_intercept: bool
    offset: np.ndarray | None
    terms: tuple[Term, ...]
    labels: tuple[str, ...]
    """The name of each column."""
    gram: np.ndarray
    """x'x / N."""
    response: Any
    """The values of a response that is an expression."""
    evaluated: tuple[Any, ...]
    """The terms of ``formulae``, which remember levels and transforms."""

    def rows(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
        """The design, standardised as before, and the offset of other rows."""
        x = np.empty((len(frame), len(self.means)))
        offset, start = None, 0
        for term in self.evaluated:
            if term.kind == "intercept":
                continue
            values = _evaluate(lambda term=term: _as_matrix(term.eval_new_data(frame)))
            if term.kind == "offset":
                offset = values[:, 0] + (0.0 if offset is None else offset)
                continue
            stop = start + values.shape[1]
            x[:, start:stop] = (values - self.means[start:stop]) / self.scales[start:stop]
            start = stop
        return x, offset


def build_design(frame: pd.DataFrame, formula: Formula) -> Design:
    """Evaluate the right-hand side, and the left one if it is an expression."""
    from formulae import model_description

    space = environment()
    text = formula.right if formula.response_column is not None else formula.text
    description = _evaluate(lambda: model_description(text), formula.text)
    _evaluate(lambda: description.eval(frame, space), formula.text)
    response = None
    if description.response is not None:
        _evaluate(lambda: (description.response.set_type(frame, space), description.response.set_data()), formula.text)
        response = description.response.term.data
    common = description.common_terms
    has_intercept = any(term.kind == "intercept" for term in common)
    columns = [term for term in common if term.kind not in ("intercept", "offset")]
    require(
        has_intercept or bool(columns),
        subject_of(formula.text),
        got="neither an intercept nor a predictor",
        expected="at least one term",
        fix="Write 'y ~ 1' for an intercept alone.",
    )
    offset = None
    for term in common:
        if term.kind == "offset":
            values = _as_matrix(term.data)[:, 0].astype(float)
            check_numbers(f"term {term.name!r}", values, frame.index.to_numpy())
            offset = values + (0.0 if offset is None else offset)
    terms, labels = _named(columns)
    x = np.empty((len(frame), len(labels)))
    for own, term in zip(terms, columns, strict=True):
        x[:, own.columns] = _as_matrix(term.data)
        term.data = None
    _forget(columns)
    means, scales = _standardise(x, labels, frame.index.to_numpy(), has_intercept=has_intercept)
    squares = gram(x)
    _check_rank(squares, labels, len(x))
    return Design(
        x, means, scales, has_intercept, offset, tuple(terms), tuple(labels), squares, response, tuple(common)
    )


def _plain(name: str) -> str:
    """A slash in the name of a variable would be a group of the result."""
    return name.replace("/", "div")


def _named(columns: list[Any]) -> tuple[list[Term], list[str]]:
    """Places and names of the columns of each term."""
    terms: list[Term] = []
    labels: list[str] = []
    for term in columns:
        width = _as_matrix(term.data).shape[1]
        require(
            width > 0,
            f"term {term.name!r}",
            got="the same level in every row",
            expected="at least two levels",
            fix="Leave it out; the intercept takes its place.",
        )
        levels = term.levels or ([str(number) for number in range(width)] if width > 1 else None)
        place = slice(len(labels), len(labels) + width)
        terms.append(Term(_plain(term.name), place, tuple(levels) if levels else None))
        labels.extend(term.labels)
    return terms, labels


def _forget(columns: list[Any]) -> None:
    """Free the rows that terms hold; what they know about levels and transforms stays."""
    for term in columns:
        for component in term.components:
            component.value = None
            component._intermediate_data = None


def _as_matrix(values: Any) -> np.ndarray:
    array = np.asarray(values)
    return array[:, None] if array.ndim == 1 else array


def _evaluate(function: Any, text: str = "") -> Any:
    """Run a step of ``formulae``, which prints on errors, and turn what it raises into words."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            return function()
    except InputError:
        raise
    except Exception as error:
        summary = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            subject_of(text) if text else "table",
            got=f"{type(error).__name__}: {summary}",
            expected="terms that can be evaluated on the columns",
            fix="Check the types of the columns and the arguments of the calls.",
        ) from error


def _standardise(
    x: np.ndarray, labels: list[str], row_numbers: np.ndarray, *, has_intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """In place; means and scales."""
    low, high = column_ranges(x)
    for place, label in enumerate(labels):
        if not (low[place] >= -LARGEST_VALUE and high[place] <= LARGEST_VALUE):
            check_numbers(f"term {label!r}", x[:, place], row_numbers)
    is_constant = (low == high) & (has_intercept | (low == 0))
    if is_constant.any():
        constant = [(label, value) for label, value, same in zip(labels, low, is_constant, strict=True) if same]
        listed = ", ".join(f"{label} = {value:g}" for label, value in constant[:10])
        is_cell = any(":" in label and value == 0 for label, value in constant)
        raise InputError(
            "design",
            got=f"terms with the same value in every row ({listed}{', ...' if len(constant) > 10 else ''})",
            expected="terms that vary",
            fix="No row has these combinations of levels: leave the interaction out, or merge levels."
            if is_cell
            else "Leave them out; the intercept takes their place.",
        )
    means = centre(x) if has_intercept else np.zeros(x.shape[1])
    return means, scale(x)


def _check_rank(squares: np.ndarray, labels: list[str], num_rows: int) -> None:
    if not labels:
        return
    values, vectors = np.linalg.eigh(squares)
    if values[0] > SMALLEST_EIGENVALUE:
        return
    weights = np.abs(vectors[:, values <= SMALLEST_EIGENVALUE]).max(axis=1)
    involved = [label for label, weight in zip(labels, weights, strict=True) if weight > 1e-3]
    raise InputError(
        "design",
        got=f"linearly dependent terms {', '.join(involved[:10])}{', ...' if len(involved) > 10 else ''}"
        f" ({num_rows} rows, {len(labels)} columns)",
        expected="terms of which none is a combination of the others",
        fix="Leave one of them out, or merge levels.",
    )
