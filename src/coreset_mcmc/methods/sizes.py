"""How many rows a coreset has unless the user says so."""

from __future__ import annotations

FEWEST_ROWS, MOST_ROWS = 100, 5_000
"""What parameters call for at least and at most."""

DEFAULT_ROWS = 500
"""Unless there are so many parameters that they call for more."""

MOST_ROWS_BESIDE_TERM = 1_500
"""Where a Gaussian term carries what is quadratic."""

HOPELESS = 1 / 3
"""Below this share of the rows that parameters call for, half of the coefficients of a quadratic, nothing is tried
without a Gaussian term: with 20 rows the paper's Poisson data ended at 240 nats.
"""


def rows_called_for(num_coordinates: int) -> int:
    """By the parameters: a quadratic in d variables has d (d + 3) / 2 coefficients to match; half as many again do."""
    return round(0.75 * num_coordinates * (num_coordinates + 3))


def rows_to_start_from(num_coordinates: int) -> int:
    """The same within bounds."""
    return min(max(FEWEST_ROWS, rows_called_for(num_coordinates)), MOST_ROWS)


def default_rows(num_coordinates: int) -> int:
    """Of a coreset whose rows say everything."""
    return max(DEFAULT_ROWS, rows_to_start_from(num_coordinates))


def default_rows_beside_term(num_coordinates: int) -> int:
    """Of one beside a Gaussian term: a few for each parameter, whose own rows are not quadratic."""
    return min(max(DEFAULT_ROWS, 2 * num_coordinates), MOST_ROWS_BESIDE_TERM)


MOST_ROWS_ALONE = 1_500
"""Up to so many, rows that say everything are tried before a Gaussian term where its expansion may be of no use."""


def rows_serve_alone(num_coordinates: int, log_concave: bool) -> bool:
    """Whether to begin without a term: a posterior that may be curved like a ridge, and not too many parameters."""
    return not log_concave and rows_called_for(num_coordinates) <= MOST_ROWS_ALONE


LARGEST_SHARE = 0.2
"""Of all rows: a larger coreset is hardly cheaper than the rows themselves."""


def hardly_pays(size: int, num_rows: int) -> bool:
    """Whether a method that takes all rows would do as well."""
    return size > LARGEST_SHARE * num_rows


def advice_for_few_rows(size: int, num_rows: int, instead: str) -> str:
    """What to say then; ``instead`` are methods in the words of the user's door."""
    return f"A coreset of {size:,} of {num_rows:,} rows, more than a fifth, hardly pays: {instead} take all rows."
