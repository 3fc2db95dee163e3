"""How many draws and rows training looks at."""

from __future__ import annotations

import pytest

from coreset_mcmc.methods.least_squares.amounts import draws_wanted, sample_wanted


@pytest.mark.parametrize(
    ("num_coordinates", "coreset_size", "has_term", "draws"),
    [
        (10, 500, False, 400),
        (30, 742, False, 495),
        (50, 2_000, False, 800),
        (30, 100, True, 800),
        (310, 1_500, True, 2_400),
        (1_000, 500, True, 2_400),
        (558, 1_000, True, 1_600),
    ],
)
def test_draws_are_enough_for_weights_and_slope(num_coordinates, coreset_size, has_term, draws):
    assert draws_wanted(num_coordinates, coreset_size, has_term=has_term) == draws


def test_many_parameters_beside_a_term_have_a_larger_sample_of_many_rows():
    rows = 10**6
    assert sample_wanted(16_384, rows, 300, has_term=True) == 65_536
    assert sample_wanted(16_384, 200_000, 300, has_term=True) == 16_384
    assert sample_wanted(16_384, rows, 199, has_term=True) == 16_384
    assert sample_wanted(16_384, rows, 300, has_term=False) == 16_384
    assert sample_wanted(None, rows, 300, has_term=True) is None
