"""How rows are divided: leaves by global row number, blocks within them, parts of several leaves.

A sum over rows is a sum over blocks within a leaf, over leaves within a part and over parts, always in the order of the
rows. Where the rows lie and who adds them up then changes no bit of the result: the tree of additions depends on their
number alone.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_LEAF_ROWS = 2**16
"""Rows in one call of a compiled program: enough to hide the cost of the call, few enough to be held twice."""
MOST_LEAF_VALUES = 2**22
"""Numbers in a leaf, so that wide rows come in shorter leaves."""
FEWEST_LEAF_ROWS = 2**8
FEW_ROWS, LEAVES_OF_MANY = 2**13, 8
"""So many rows are one leaf; more come in at least so many leaves, or in leaves of that length: several cores share
them."""
MOST_BLOCK_ROWS = 2**11
"""Rows evaluated at once inside a program: enough to amortise the loop, few enough to stay in cache."""
LEAVES_PER_PART = 16
"""A part is what is handed to a worker, and what comes back is as large as the result for one leaf."""


@dataclass(frozen=True)
class Layout:
    """``size`` rows in leaves of ``leaf_rows``, of which the last may be shorter."""

    size: int
    leaf_rows: int

    @classmethod
    def of(cls, size: int, values_per_row: int) -> Layout:
        """Leaves whose length is a power of two, so that few different programs serve tables of all sizes."""
        most = min(MOST_LEAF_ROWS, max(_power_below(MOST_LEAF_VALUES // max(values_per_row, 1)), FEWEST_LEAF_ROWS))
        shared = max(_power_below(size // LEAVES_OF_MANY), FEW_ROWS)
        return cls(size, min(most, shared, max(_power_above(size), FEWEST_LEAF_ROWS)))

    @property
    def block_rows(self) -> int:
        return min(self.leaf_rows, MOST_BLOCK_ROWS)

    @property
    def num_leaves(self) -> int:
        return -(-self.size // self.leaf_rows)

    @property
    def num_parts(self) -> int:
        return -(-self.num_leaves // LEAVES_PER_PART)

    def rows_of_leaf(self, number: int) -> tuple[int, int]:
        """Its first row, and the row after its last."""
        start = number * self.leaf_rows
        return start, min(start + self.leaf_rows, self.size)

    def leaves_of_part(self, part: int) -> range:
        return range(part * LEAVES_PER_PART, min((part + 1) * LEAVES_PER_PART, self.num_leaves))

    def leaf_of_row(self, row: int) -> int:
        return row // self.leaf_rows


def _power_above(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _power_below(number: int) -> int:
    return 1 << max(number.bit_length() - 1, 0)
