"""Moves along ellipses and lines in Python: right moments for any centre and scale, at edges; a wrong rest is seen."""

from __future__ import annotations

import numpy as np
import pytest

from coreset_mcmc.diagnostics.metrics import bulk_ess
from coreset_mcmc.kernels.ellipses import DEGREES, Point, Shape, along_ellipse, along_line, together

NUM_CHAINS, NUM_DRAWS = 4, 1_500
FALSE_ALARMS = 4.0
"""Monte Carlo errors of a comparison: one in 16 000."""


def gaussian(flat: np.ndarray) -> np.ndarray:
    """Correlated, with variances 1 and 4."""
    x, y = flat.T
    return -0.5 * (x**2 - 0.6 * x * (y / 2) * 2 + (y / 2) ** 2) / (1 - 0.36)


def gamma_and_edge(flat: np.ndarray) -> np.ndarray:
    """A gamma(2, 1) beside an exponential, both from zero on."""
    x, y = flat.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((x > 0) & (y > 0), np.log(x) - x - y, -np.inf)


def moments(density, move, start, num_draws=NUM_DRAWS):
    """Means of x, y, x^2 and y^2, with their Monte Carlo errors."""
    generators = np.random.default_rng(0).spawn(NUM_CHAINS)
    points = [Point(np.array(start), float(density(np.array([start]))[0]))] * NUM_CHAINS
    draws = np.empty((NUM_CHAINS, num_draws, 2))
    for number in range(num_draws):
        moves = together([move(generator, point) for generator, point in zip(generators, points, strict=True)], density)
        points = [one.point for one in moves]
        assert all(one.found for one in moves)
        draws[:, number] = [point.flat for point in points]
    kept = draws[:, num_draws // 10 :]
    values = np.concatenate([kept, kept**2], axis=2)
    errors = values.std(axis=(0, 1)) / np.sqrt(bulk_ess(values))
    return values.mean(axis=(0, 1)), errors


def ellipses(centre, scale):
    shape = Shape(np.asarray(centre, float), np.asarray(scale, float))
    return lambda generator, point: along_ellipse(generator, point, shape)


def lines(scale):
    return lambda generator, point: along_line(generator, point, np.asarray(scale, float))


RIGHT = np.linalg.cholesky([[1.0, 1.2], [1.2, 4.0]])


@pytest.mark.full
@pytest.mark.parametrize(
    "move",
    [ellipses([0, 0], RIGHT), ellipses([1, -1], 0.7 * np.eye(2)), lines(RIGHT), lines(0.1 * np.eye(2))],
    ids=["ellipses", "ellipses, wrong shape", "lines", "lines, narrow"],
)
def test_moments_of_a_gaussian(move):
    means, errors = moments(gaussian, move, [0.1, 0.1])
    assert np.all(np.abs(means - [0, 0, 1, 4]) < FALSE_ALARMS * errors)


@pytest.mark.full
@pytest.mark.parametrize("move", [ellipses([2, 1], np.eye(2)), lines(np.eye(2))], ids=["ellipses", "lines"])
def test_moments_at_an_edge(move):
    means, errors = moments(gamma_and_edge, move, [1.0, 1.0])
    assert np.all(np.abs(means - [2, 1, 6, 2]) < FALSE_ALARMS * errors)


@pytest.mark.full
def test_a_rest_that_forgets_the_distribution_is_seen():
    """The broken twin: slicing the density itself and not what is left of it."""

    def forgetful(flat: np.ndarray) -> np.ndarray:
        whitened = np.linalg.solve(RIGHT, flat.T)
        return gaussian(flat) - 0.5 * (DEGREES + 2) * np.log1p(np.sum(whitened**2, axis=0) / DEGREES)

    means, errors = moments(forgetful, ellipses([0, 0], RIGHT), [0.1, 0.1])
    assert np.any(np.abs(means - [0, 0, 1, 4]) > 2 * FALSE_ALARMS * errors)


def test_a_move_costs_about_one_evaluation_where_the_shape_is_right():
    generator, shape = np.random.default_rng(1), Shape(np.zeros(2), RIGHT)
    counts, point = [], Point(np.zeros(2), 0.0)
    for _ in range(300):
        move = together([along_ellipse(generator, point, shape)], gaussian)[0]
        counts.append(move.num_evaluations)
        point = move.point
    assert np.mean(counts) < 1.5


def test_chains_share_calls():
    calls = []

    def counted(flat: np.ndarray) -> np.ndarray:
        calls.append(len(flat))
        return gaussian(flat)

    generators = np.random.default_rng(2).spawn(NUM_CHAINS)
    start = Point(np.zeros(2), 0.0)
    moves = together([along_line(generator, start, RIGHT) for generator in generators], counted)
    assert sum(calls) == sum(move.num_evaluations for move in moves)
    assert len(calls) == max(move.num_evaluations for move in moves)
