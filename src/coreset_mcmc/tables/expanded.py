"""Moments and ranges of all columns of a design, of which those that stand for levels are known from counts alone.

With n_l rows of level l among n, and v - m the other columns about their means, the products about the means are

    sum_n (1{l} - n_l/n)(v - m) = sum over rows of l of (v - m),
    n_l - n_l^2/n  and  -n_l n_k/n   within a factor,      n_lk - n_l n_k/n   between two, n_lk rows having both levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coreset_mcmc.tables.moments import Moments, Ranges, moments_of, ranges_of
from coreset_mcmc.tables.row_terms import RowTerms


@dataclass(frozen=True, eq=False)
class Expanded:
    """From dense columns and codes to the measures of all ``num_measured`` columns: the design, then the response."""

    terms: RowTerms
    num_measured: int

    @cached_property
    def places(self) -> np.ndarray:
        """Of the columns that are dense."""
        return np.concatenate([self.terms.places, np.arange(self.terms.width, self.num_measured)])

    def moments(
        self, values: np.ndarray, codes: np.ndarray, shift: np.ndarray, weights: np.ndarray | None = None
    ) -> Moments:
        """Of dense columns, which are overwritten, and codes; means are differences from ``shift``."""
        found = moments_of(values, shift[self.places], weights)
        if not self.terms.factors:
            return found
        means, products = -shift, np.zeros((self.num_measured, self.num_measured))
        means[self.places] = found.means
        products[np.ix_(self.places, self.places)] = found.products
        counts = [self._counts(codes, place, weights) for place in range(len(self.terms.factors))]
        for place, factor in enumerate(self.terms.factors):
            own, share = factor.columns, counts[place] / found.num_rows
            means[own] += share
            across = self._sums(values if weights is None else values * weights[:, None], codes[:, place], place)
            products[own, self.places] = across
            products[np.ix_(self.places, np.arange(self.num_measured)[own])] = across.T
            for other in range(place + 1):
                among = np.diag(counts[place]) if other == place else self._pairs(codes, place, other, weights)
                table = among - np.outer(share, counts[other])
                products[own, self.terms.factors[other].columns] = table
                products[self.terms.factors[other].columns, own] = table.T
        return Moments(found.num_rows, means, products)

    def ranges(self, x: np.ndarray, codes: np.ndarray, chosen: np.ndarray | None = None) -> Ranges:
        """Of the columns of the design, over the rows of a mask or over all."""
        found = ranges_of(x, chosen)
        if not self.terms.factors:
            return found
        low, high = np.empty(self.terms.width), np.empty(self.terms.width)
        low[self.terms.places], high[self.terms.places] = found
        some = codes if chosen is None else codes[chosen]
        for place, factor in enumerate(self.terms.factors):
            counts = self._counts(some, place)
            low[factor.columns] = np.where(counts == len(some), 1.0, 0.0) if len(some) else np.inf
            high[factor.columns] = np.where(counts > 0, 1.0, 0.0) if len(some) else -np.inf
        return Ranges(low, high)

    def _counts(self, codes: np.ndarray, place: int, weights: np.ndarray | None = None) -> np.ndarray:
        factor = self.terms.factors[place]
        counts: np.ndarray = np.bincount(codes[:, place], weights, minlength=factor.num_levels)[factor.levels]
        return counts.astype(float)

    def _sums(self, values: np.ndarray, codes: np.ndarray, place: int) -> np.ndarray:
        """Of each column over the rows of each level."""
        factor = self.terms.factors[place]
        sums = [np.bincount(codes, column, minlength=factor.num_levels) for column in values.T]
        of_levels: np.ndarray = np.stack(sums, axis=1)[factor.levels]
        return of_levels

    def _pairs(self, codes: np.ndarray, one: int, other: int, weights: np.ndarray | None) -> np.ndarray:
        """Rows of each pair of levels."""
        first, second = self.terms.factors[one], self.terms.factors[other]
        joint = codes[:, one].astype(np.int64) * second.num_levels + codes[:, other]
        counts = np.bincount(joint, weights, minlength=first.num_levels * second.num_levels).astype(float)
        table: np.ndarray = counts.reshape(first.num_levels, second.num_levels)[np.ix_(first.levels, second.levels)]
        return table
