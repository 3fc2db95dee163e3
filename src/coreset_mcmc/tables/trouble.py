"""Numbers that cannot be used, counted leaf by leaf, with the first of them: one error for all rows.

Each count comes with the number of the first such row in the user's table, so that an error can say where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coreset_mcmc.core.errors import InputError

LARGEST_VALUE = 1e100
"""Squares of larger numbers overflow when their rows are summed."""

PlaceOf = Callable[[int], str]
"""How a user would find a row of the table."""


@dataclass(frozen=True)
class Found:
    """How many, and the first: its row and its value."""

    count: int
    row: int
    value: float

    def joined(self, later: Found | None) -> Found:
        return self if later is None else Found(self.count + later.count, self.row, self.value)


def both(one: Found | None, later: Found | None) -> Found | None:
    """Of earlier rows and of later ones."""
    return later if one is None else one.joined(later)


@dataclass(frozen=True)
class Trouble:
    """Numbers that are not finite, and all that are not finite or too large."""

    infinite: Found | None
    bad: Found

    def joined(self, later: Trouble) -> Trouble:
        return Trouble(both(self.infinite, later.infinite), self.bad.joined(later.bad))

    def error(self, subject: str, place_of: PlaceOf) -> InputError:
        if self.infinite is not None:
            return InputError(
                subject,
                got=f"{self.infinite.count} values that are infinite or not a number "
                f"(first in {place_of(self.infinite.row)})",
                expected="finite numbers",
                fix="Drop or repair those rows; a transform such as np.log needs arguments inside its domain.",
            )
        return InputError(
            subject,
            got=f"{self.bad.count} values as large as {self.bad.value:.3g} (first in {place_of(self.bad.row)})",
            expected=f"numbers of at most {LARGEST_VALUE:g}",
            fix="Such values usually stand for something that is missing; drop those rows, or change the unit.",
        )


def is_usable(low: float, high: float) -> bool:
    """Whether all numbers between these are finite and of a size whose squares can be summed; NaN is not."""
    return bool(low >= -LARGEST_VALUE and high <= LARGEST_VALUE)


def found(marked: np.ndarray, values: np.ndarray, row_of: Callable[[int], int]) -> Found | None:
    """Marked values, and the row of the first."""
    count = int(np.count_nonzero(marked))
    if not count:
        return None
    first = int(np.argmax(marked))
    return Found(count, row_of(first), float(values[first]))


def trouble_in(values: np.ndarray, row_of: Callable[[int], int]) -> Trouble | None:
    """What is wrong with numbers of which ``row_of(place)`` is the row."""
    if not values.size or is_usable(float(values.min()), float(values.max())):
        return None
    with np.errstate(invalid="ignore"):
        bad = found(~(np.abs(values) <= LARGEST_VALUE), values, row_of)
    assert bad is not None
    return Trouble(found(~np.isfinite(values), values, row_of), bad)


Troubles = Mapping[str, Trouble]
"""By what an error would be about."""


def joined(one: Troubles, later: Troubles) -> Troubles:
    """The troubles of earlier rows and of later ones."""
    if not later:
        return one
    total = dict(one)
    for subject, trouble in later.items():
        total[subject] = one[subject].joined(trouble) if subject in one else trouble
    return total


def raise_first(troubles: Troubles, subjects: list[str], place_of: PlaceOf) -> None:
    """The error about the first of these subjects that has one."""
    for subject in subjects:
        if subject in troubles:
            raise troubles[subject].error(subject, place_of)
