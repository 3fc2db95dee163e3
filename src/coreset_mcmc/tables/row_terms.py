"""All terms of a formula, from clean rows to the numbers of a design: dense columns, codes of factors, offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from coreset_mcmc.tables.columns import CleanRows
from coreset_mcmc.tables.factors import CodedTerm, dense_places
from coreset_mcmc.tables.groups import GroupFactor, GroupTerms
from coreset_mcmc.tables.terms import Component


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The columns of the design, and the parts of the offset."""

    dense: tuple[Component, ...]
    """Terms that are evaluated, in the order of their columns."""
    width: int
    """Columns of the design, those that factors stand for among them."""
    offsets: tuple[Component, ...]
    factors: tuple[CodedTerm, ...] = ()
    groups: GroupTerms = field(default_factory=GroupTerms)
    extras: tuple[tuple[str, Component], ...] = ()
    """What else belongs to a row, by its key: trials, whether it is censored, its weight."""

    @cached_property
    def places(self) -> np.ndarray:
        """Of the dense columns among all columns."""
        return dense_places(self.width, self.factors)

    def design(self, rows: CleanRows, into: np.ndarray | None = None) -> np.ndarray:
        """The dense columns (n, p), in the user's units; the first columns of ``into``."""
        width = len(self.places)
        x = np.empty((rows.count, width)) if into is None else into[:, :width]
        start = 0
        for component in self.dense:
            values = component.values(rows)
            x[:, start : start + values.shape[1]] = values
            start += values.shape[1]
        return x

    def codes(self, rows: CleanRows) -> np.ndarray:
        """(n, F), those of factors and then those of groups."""
        both: list[CodedTerm | GroupFactor] = [*self.factors, *self.groups.factors]
        codes = np.empty((rows.count, len(both)), np.int32)
        for place, factor in enumerate(both):
            codes[:, place] = factor.codes(rows)
        return codes

    @property
    def num_codes(self) -> int:
        return len(self.factors) + len(self.groups.factors)

    def extra_values(self, rows: CleanRows) -> dict[str, np.ndarray]:
        return {key: np.ascontiguousarray(part.values(rows)[:, 0], float) for key, part in self.extras}

    def offset_parts(self, rows: CleanRows) -> list[np.ndarray]:
        return [np.ascontiguousarray(component.values(rows)[:, 0], float) for component in self.offsets]


def total_offset(parts: list[np.ndarray]) -> np.ndarray | None:
    """The sum of its parts, if it has any."""
    return reduce(np.add, parts) if parts else None
