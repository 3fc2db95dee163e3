"""How the columns of a design follow from clean rows, a run at a time.

``formulae`` decides what a formula means: which columns a term has, how levels are coded. Evaluating it is done here as
far as it concerns plain columns and levels, which are most of a design; expressions go to ``formulae``. What is
evaluated for one row never depends on other rows of the same run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables.columns import CleanRows


class Component(ABC):
    """A factor of a term: some columns."""

    @abstractmethod
    def values(self, rows: CleanRows) -> np.ndarray:
        """(n, k) numbers."""


@dataclass(frozen=True)
class Plain(Component):
    """A column of numbers or booleans as it is."""

    name: str

    def values(self, rows: CleanRows) -> np.ndarray:
        array: np.ndarray = rows.columns[self.name]
        return array[:, None]


@dataclass(frozen=True, eq=False)
class Coded(Component):
    """A column of levels, each of which stands for a row of a matrix."""

    name: str
    levels: tuple[Any, ...]
    matrix: np.ndarray

    def values(self, rows: CleanRows) -> np.ndarray:
        values: np.ndarray = self.matrix[self.codes(rows)]
        return values

    def codes(self, rows: CleanRows) -> np.ndarray:
        """The place of each row's value among the levels (n,)."""
        column = rows.columns[self.name]
        if isinstance(column, pd.Categorical):
            found, codes = column.categories.tolist(), np.asarray(column.codes)
        else:
            distinct, codes = np.unique(column, return_inverse=True)
            found = distinct.tolist()
        if tuple(found[: len(self.levels)]) != self.levels or len(found) > len(self.levels):
            codes = self._places(found, codes, rows)
        return codes

    def _places(self, found: list[Any], codes: np.ndarray, rows: CleanRows) -> np.ndarray:
        known = {level: place for place, level in enumerate(self.levels)}
        places: np.ndarray = np.array([known.get(level, -1) for level in found], dtype=np.int64)[codes]
        if places.size and places.min() < 0:
            unknown = sorted({str(found[code]) for code in np.unique(codes[places < 0])})
            few = ", ".join(map(str, self.levels[:20]))
            raise InputError(
                "new rows",
                got=f"other levels: ({', '.join(unknown)}) in {self.name!r} are not present in the original data "
                f"(first in {rows.place_of(int(np.argmin(places)))})",
                expected=f"levels among {few}{', ...' if len(self.levels) > 20 else ''}",
                fix="Leave those rows out, or fit a table that has them.",
            )
        return places


@dataclass(frozen=True, eq=False)
class Expression(Component):
    """A call or arithmetic, which ``formulae`` evaluates."""

    call: Any

    def values(self, rows: CleanRows) -> np.ndarray:
        name = f"term {self.call.name!r}"
        values: np.ndarray = evaluated(name, lambda: as_matrix(self.call.eval_new_data(rows.frame)))
        return values


@dataclass(frozen=True, eq=False)
class Product(Component):
    """An interaction: all products of a column of each."""

    factors: tuple[Component, ...]

    def values(self, rows: CleanRows) -> np.ndarray:
        return reduce(_products, [np.asarray(factor.values(rows), float) for factor in self.factors])


@dataclass(frozen=True, eq=False)
class Selected(Component):
    """Some of the columns of another."""

    whole: Component
    columns: tuple[int, ...]

    def values(self, rows: CleanRows) -> np.ndarray:
        values: np.ndarray = self.whole.values(rows)[:, list(self.columns)]
        return values


@dataclass(frozen=True)
class Constant(Component):
    """The same number in every row."""

    value: float

    def values(self, rows: CleanRows) -> np.ndarray:
        return np.full((rows.count, 1), self.value)


def expressions_in(components: Iterable[Component]) -> Iterator[Expression]:
    """What may be outside of its domain although every column is a number."""
    for component in components:
        if isinstance(component, Expression):
            yield component
        elif isinstance(component, Product):
            yield from expressions_in(component.factors)
        elif isinstance(component, Selected):
            yield from expressions_in([component.whole])


def _products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    product: np.ndarray = one[:, :, None] * other[:, None, :]
    return product.reshape(len(one), one.shape[1] * other.shape[1])


def as_matrix(values: Any) -> np.ndarray:
    """One column or several as an array of two dimensions."""
    array = np.asarray(values)
    return array[:, None] if array.ndim == 1 else array


def evaluated(text: str, function: Any) -> Any:
    """Run a step of ``formulae``, and turn what it raises into words."""
    try:
        with np.errstate(all="ignore"):
            return function()
    except InputError:
        raise
    except Exception as error:
        summary = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            text,
            got=f"{type(error).__name__}: {summary}",
            expected="terms that can be evaluated on the columns",
            fix="Check the types of the columns and the arguments of the calls.",
        ) from error
