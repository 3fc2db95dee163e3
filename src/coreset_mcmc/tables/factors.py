"""Factors of many levels as a column of codes instead of a column of zeros and ones for each level.

A main effect of L levels stands for L - 1 columns of the design, one for each level but that of reference, or for L if
there is none. Standardised, column l of row n is (1{code_n = l} - m_l) / s_l with the mean and the standard deviation
of its zeros and ones, so the term adds to the predictor

    sum_l (1{code_n = l} - m_l) / s_l z_l = effect[code_n] - sum_l m_l / s_l z_l,     effect[l] = z_l / s_l,

an effect that is looked up, and a number that all rows share. Coefficients, priors and everything that is shown are
those of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import CleanRows
from coreset_mcmc.tables.terms import Coded, Component

CODES = "codes"
"""The key of the codes (N, F) among the rows of a regression."""
FEWEST_LEVELS = 9
"""Of a factor that becomes codes; with fewer, columns of zeros and ones are as quick."""


def _levels(count: int, reference: int | None) -> np.ndarray:
    """Those that have a column."""
    every = np.arange(count)
    return every if reference is None else np.delete(every, reference)


@dataclass(frozen=True, eq=False)
class CodedTerm:
    """A term of a formula whose rows are codes."""

    component: Coded
    columns: slice
    """Of the design, for which it stands."""
    reference: int | None
    """The level without a column."""

    @property
    def num_levels(self) -> int:
        return len(self.component.levels)

    @property
    def levels(self) -> np.ndarray:
        """Of its columns."""
        return _levels(self.num_levels, self.reference)

    def codes(self, rows: CleanRows) -> np.ndarray:
        """(n,)"""
        return self.component.codes(rows)


def coded_term(component: Component, columns: slice) -> CodedTerm | None:
    """A term as codes, if that is what it is and if it has levels enough."""
    if not isinstance(component, Coded) or len(component.levels) < FEWEST_LEVELS:
        return None
    matrix, count = component.matrix, len(component.levels)
    without = np.flatnonzero(~matrix.any(axis=1))
    reference = int(without[0]) if len(without) else None
    expected = np.eye(count) if reference is None else np.delete(np.eye(count), reference, axis=1)
    return CodedTerm(component, columns, reference) if np.array_equal(matrix, expected) else None


@dataclass(frozen=True)
class Factor:
    """What a compiled program knows about a factor: numbers of the table, so it is one for each table."""

    start: int
    """The first of its coefficients."""
    reference: int | None
    means: tuple[float, ...]
    scales: tuple[float, ...]

    @classmethod
    def measured(cls, term: CodedTerm, means: np.ndarray, scales: np.ndarray) -> Factor:
        own = term.columns
        return cls(own.start, term.reference, tuple(means[own].tolist()), tuple(scales[own].tolist()))

    @property
    def columns(self) -> slice:
        return slice(self.start, self.start + len(self.scales))

    @property
    def num_levels(self) -> int:
        return len(self.scales) + (self.reference is not None)

    @property
    def levels(self) -> np.ndarray:
        """Of its coefficients."""
        return _levels(self.num_levels, self.reference)

    def effects(self, coefficients: Any) -> jax.Array:
        """Of each level (L,), from all coefficients; zero for that of reference."""
        own = coefficients[self.columns] / np.array(self.scales)
        # A scatter is an array of its own: XLA would fuse a concatenation with the lookup, once for every row.
        whole = jnp.zeros(self.num_levels).at[self.levels]
        return whole.set(own, unique_indices=True, indices_are_sorted=True)

    def centre(self, coefficients: Any) -> jax.Array:
        """What is taken away from every row."""
        return jnp.dot(np.array(self.means) / np.array(self.scales), coefficients[self.columns])

    @property
    def squared_lengths(self) -> np.ndarray:
        """Of the standardised columns of a row, by its level (L,)."""
        means, scales = np.array(self.means), np.array(self.scales)
        without = float(np.sum((means / scales) ** 2))
        own = without + (1.0 - 2.0 * means) / scales**2
        return own if self.reference is None else np.insert(own, self.reference, without)


def dense_places(width: int, factors: Any) -> np.ndarray:
    """Columns of a design of so many that no factor stands for."""
    is_dense = np.ones(width, bool)
    for factor in factors:
        is_dense[factor.columns] = False
    return np.flatnonzero(is_dense)


def check_codes(data: Any, num_levels: Sequence[int]) -> None:
    """Refuse codes that are not levels; JAX would clip them in silence."""
    codes = np.asarray(data[CODES]) if CODES in data else None
    shape = None if codes is None else codes.shape
    require(
        shape is not None and len(shape) == 2 and shape[1] == len(num_levels),
        "regression data",
        got=f"keys {sorted(map(str, data))}" if codes is None else f'"{CODES}" of shape {shape}',
        expected=f'"{CODES}" of shape (N, {len(num_levels)}), a column for each factor of {FEWEST_LEVELS} levels or '
        "more and for each kind of group",
        fix="Use the data of the regression, or its new_rows(frame).",
    )
    assert codes is not None
    for place, count in enumerate(num_levels):
        outside = (codes[:, place] < 0) | (codes[:, place] >= count)
        if outside.any():
            first = int(np.argmax(outside))
            raise InputError(
                "regression data",
                got=f"code {codes[first, place]} of factor {place} in row {first}",
                expected=f"whole numbers from 0 to {count - 1}",
                fix="Use the data of the regression, or its new_rows(frame).",
            )
