"""The largest eigenvalues of many dimensions are those of a full decomposition."""

import numpy as np
import pytest

from coreset_mcmc.methods.least_squares import curvature
from coreset_mcmc.methods.least_squares.curvature import largest_pairs


def matrix(size: int, rank: int) -> np.ndarray:
    generator = np.random.default_rng(size)
    rows = generator.normal(size=(rank, size)) * generator.gamma(1.0, size=(rank, 1))
    return rows.T @ rows / rank


@pytest.mark.parametrize(("size", "count"), [(5, 32), (120, 32), (120, 1)])
def test_by_either_way(size, count, monkeypatch):
    made = matrix(size, 80)
    few, all_of_them = min(size, count), np.linalg.eigvalsh(made)
    for most in (10**9, 0 if size > count else 10**9):
        monkeypatch.setattr(curvature, "MANY_DIMENSIONS", most)
        values, vectors = largest_pairs(made, count)
        np.testing.assert_allclose(values, all_of_them[-few:], atol=1e-3 * all_of_them[-1])
        np.testing.assert_allclose(made @ vectors, vectors * values, atol=1e-2 * all_of_them[-1])


def test_a_search_that_does_not_end_is_done_in_full(monkeypatch):
    def gives_up(*arguments, **options):
        raise curvature.ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((0, 0)))

    made = matrix(40, 30)
    monkeypatch.setattr(curvature, "MANY_DIMENSIONS", 0)
    monkeypatch.setattr(curvature, "eigsh", gives_up)
    np.testing.assert_allclose(largest_pairs(made, 3)[0], np.linalg.eigvalsh(made)[-3:], rtol=1e-9)
