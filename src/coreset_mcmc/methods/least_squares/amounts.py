"""How many draws a window has, and how many rows stand behind its sums."""

from __future__ import annotations

FEWEST_DRAWS, MOST_DRAWS = 400, 800
"""In a window."""

FEWEST_DRAWS_BESIDE_TERM, MOST_DRAWS_BESIDE_TERM = 800, 2_400
DRAWS_PER_ROW, DRAWS_PER_COORDINATE = 1.6, 2.4
"""Beside a Gaussian term: equations for the weights, and for the slope, with some to spare. With 1 500 rows for a
factor of 300 levels 800 draws ended at 0.06 nats, 2 400 at 0.01 and sooner.
"""

MANY_COORDINATES, LARGER_SAMPLE = 200, 4
"""Beside a Gaussian term with so many parameters, control variates have a sample so many times larger, where there are
four times as many rows still: passes over all rows for thousands of draws would cost far more.
"""

FEW_OF_ALL = 4
"""Control variates are used from this many times the rows of their sample, and so is the mode of a sample."""


def draws_wanted(num_coordinates: int, coreset_size: int, *, has_term: bool) -> int:
    """Enough equations for what they have to tell."""
    if has_term:
        wanted = max(round(DRAWS_PER_ROW * coreset_size), round(DRAWS_PER_COORDINATE * num_coordinates))
        return min(max(wanted, FEWEST_DRAWS_BESIDE_TERM), MOST_DRAWS_BESIDE_TERM)
    wanted = min(num_coordinates * (num_coordinates + 3) // 2, coreset_size)
    return min(max(wanted, FEWEST_DRAWS), MOST_DRAWS)


def sample_wanted(size: int | None, num_rows: int, num_coordinates: int, *, has_term: bool) -> int | None:
    """Rows behind control variates, given what was asked for; none for all rows always."""
    if size is None:
        return None
    larger = size * LARGER_SAMPLE
    is_larger = has_term and num_coordinates >= MANY_COORDINATES and num_rows >= FEW_OF_ALL * larger
    return larger if is_larger else size
