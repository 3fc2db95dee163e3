"""Every feasible set projects to its nearest point; the simplex agrees with independent solvers."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.coreset_mcmc.projections import Affine, Box, FeasibleSet, NonNegative, Simplex
from coreset_mcmc.methods.registry import FEASIBLE_SETS

PROPERTY = settings(deadline=None, max_examples=50, derandomize=True)

COUNT = 6
"""One length for all property tests, so that each set compiles once."""

SIZES = st.sampled_from([1, 7, 1_000, 98_673])
VECTORS = arrays(float, COUNT, elements=st.floats(-1e4, 1e4))
UNIT_VECTORS = arrays(float, COUNT, elements=st.floats(0.0, 1.0))
SETS = [
    pytest.param(NonNegative(), id="non-negative"),
    pytest.param(Simplex(), id="simplex"),
    pytest.param(Affine(), id="affine"),
    pytest.param(Box(250.0), id="box"),
]


@partial(jax.jit, static_argnames="kind")
def _project(feasible_set: FeasibleSet, weights: jax.Array, size: int, kind: type) -> jax.Array:
    del kind
    return feasible_set.project(weights, size)


def project(feasible_set: FeasibleSet, weights: np.ndarray, size: int) -> np.ndarray:
    """Through one compiled program for each kind of set."""
    return np.asarray(_project(feasible_set, weights, size, type(feasible_set)))


def a_feasible_point(feasible_set: FeasibleSet, shares: np.ndarray, size: int) -> np.ndarray:
    """A point of the set built without projecting, from numbers in [0, 1]."""
    if isinstance(feasible_set, Simplex):
        return size * (shares + 1.0) / np.sum(shares + 1.0)
    if isinstance(feasible_set, Affine):
        return 1e3 * (shares - shares.mean()) + size / COUNT
    return shares * (feasible_set.upper if isinstance(feasible_set, Box) else 1e4)


def rounding(*vectors: np.ndarray, size: int) -> float:
    """An absolute tolerance for sums of a few numbers of this magnitude."""
    return 1e-12 * (size + max(float(np.abs(vector).max()) for vector in vectors))


def test_every_registered_set_is_here() -> None:
    assert {type(param.values[0]) for param in SETS} == set(FEASIBLE_SETS.values())


def test_compiled_programs_tell_the_sets_apart() -> None:
    """A compiled program is looked up by structure: two sets with equal ones can be taken for each other."""
    structures = [jax.tree.structure(feasible_set) for feasible_set in (NonNegative(), Simplex(), Affine())]
    assert not any(first == second for first, second in combinations(structures, 2))


@pytest.mark.parametrize("feasible_set", SETS)
class TestEverySet:
    @PROPERTY
    @given(weights=VECTORS, size=SIZES)
    def test_lands_inside(self, feasible_set: FeasibleSet, weights: np.ndarray, size: int) -> None:
        projected = project(feasible_set, weights, size)
        if not isinstance(feasible_set, Affine):
            assert projected.min() >= 0.0
        if isinstance(feasible_set, Box):
            assert projected.max() <= feasible_set.upper
        if isinstance(feasible_set, Affine | Simplex):
            assert abs(projected.sum() - size) <= rounding(weights, size=size)

    @PROPERTY
    @given(weights=VECTORS, size=SIZES)
    def test_is_idempotent(self, feasible_set: FeasibleSet, weights: np.ndarray, size: int) -> None:
        once = project(feasible_set, weights, size)
        np.testing.assert_allclose(
            project(feasible_set, once, size), once, rtol=0.0, atol=rounding(weights, once, size=size)
        )

    @PROPERTY
    @given(shares=UNIT_VECTORS, size=SIZES)
    def test_keeps_feasible_points(self, feasible_set: FeasibleSet, shares: np.ndarray, size: int) -> None:
        point = a_feasible_point(feasible_set, shares, size)
        np.testing.assert_allclose(project(feasible_set, point, size), point, rtol=0.0, atol=rounding(point, size=size))

    @PROPERTY
    @given(first=VECTORS, second=VECTORS, size=SIZES)
    def test_does_not_expand(self, feasible_set: FeasibleSet, first: np.ndarray, second: np.ndarray, size: int) -> None:
        distance = np.linalg.norm(project(feasible_set, first, size) - project(feasible_set, second, size))
        assert distance <= np.linalg.norm(first - second) + rounding(first, second, size=size)

    @PROPERTY
    @given(weights=VECTORS, shares=UNIT_VECTORS, size=SIZES)
    def test_is_the_nearest_point(
        self, feasible_set: FeasibleSet, weights: np.ndarray, shares: np.ndarray, size: int
    ) -> None:
        """<v - Pv, z - Pv> <= 0 for every feasible z characterises the Euclidean projection."""
        projected = project(feasible_set, weights, size)
        point = a_feasible_point(feasible_set, shares, size)
        residual, direction = weights - projected, point - projected
        scale = np.linalg.norm(residual) + np.linalg.norm(direction) + 1.0
        assert residual @ direction <= scale * COUNT * rounding(weights, projected, point, size=size)

    def test_keeps_the_type_and_compiles_once(self, feasible_set: FeasibleSet) -> None:
        compiled = jax.jit(lambda feasible, weights: feasible.project(weights, 10))
        for weights in (np.linspace(-3.0, 400.0, COUNT), np.linspace(5.0, -2.0, COUNT)):
            result = compiled(feasible_set, jnp.asarray(weights))
            assert result.dtype == jnp.float64
            np.testing.assert_allclose(result, project(feasible_set, weights, 10), rtol=1e-13)
        assert compiled._cache_size() == 1


class TestSimplex:
    def test_by_hand(self) -> None:
        np.testing.assert_allclose(project(Simplex(), np.array([3.0, 1.0, -1.0]), 2), [2.0, 0.0, 0.0])
        np.testing.assert_allclose(project(Simplex(), np.array([1.0, 1.0, -1.0]), 4), [2.0, 2.0, 0.0])

    def test_is_not_clipping_and_rescaling(self) -> None:
        weights = np.array([3.0, 1.0, -1.0])
        clipped = np.maximum(weights, 0.0)
        rescaled = 2 * clipped / clipped.sum()
        projected = project(Simplex(), weights, 2)
        assert np.linalg.norm(projected - weights) < np.linalg.norm(rescaled - weights) - 0.1

    @PROPERTY
    @given(weights=VECTORS, size=SIZES)
    def test_matches_a_root_of_the_threshold(self, weights: np.ndarray, size: int) -> None:
        """max(v - tau, 0) with tau found by bisection instead of sorting."""

        def excess(threshold: float) -> float:
            return float(np.maximum(weights - threshold, 0.0).sum() - size)

        threshold = brentq(excess, weights.min() - size - 1.0, weights.max() + 1.0, xtol=1e-12, rtol=1e-15)
        np.testing.assert_allclose(
            project(Simplex(), weights, size),
            np.maximum(weights - threshold, 0.0),
            rtol=0.0,
            atol=rounding(weights, size=size),
        )

    def test_matches_a_quadratic_program(self, rng: np.random.Generator) -> None:
        for _ in range(5):
            weights = 3.0 * rng.normal(size=8)
            solution = minimize(
                lambda point, target=weights: 0.5 * np.sum((point - target) ** 2),
                np.full(8, 0.5),
                jac=lambda point, target=weights: point - target,
                bounds=[(0.0, None)] * 8,
                constraints={"type": "eq", "fun": lambda point: point.sum() - 4.0, "jac": np.ones_like},
                method="SLSQP",
                options={"ftol": 1e-12},
            )
            assert solution.success
            np.testing.assert_allclose(project(Simplex(), weights, 4), solution.x, atol=1e-6)

    def test_one_row_stands_for_all(self) -> None:
        np.testing.assert_allclose(project(Simplex(), np.array([-5.0]), 12), [12.0])


class TestAffine:
    def test_projects_the_update(self, rng: np.random.Generator) -> None:
        """From a feasible point it subtracts the mean of the step: the projector I - 11'/M."""
        start, step = np.full(5, 20.0), rng.normal(size=5)
        projector = np.eye(5) - np.ones((5, 5)) / 5
        np.testing.assert_allclose(project(Affine(), start + step, 100), start + projector @ step, rtol=1e-14)

    def test_weights_may_be_negative(self) -> None:
        np.testing.assert_allclose(project(Affine(), np.array([-10.0, 10.0]), 2), [-9.0, 11.0])


class TestBox:
    def test_another_bound_does_not_compile_again(self) -> None:
        compiled = jax.jit(lambda box, weights: box.project(weights, 10))
        weights = jnp.array([-1.0, 1.0, 9.0])
        np.testing.assert_array_equal(compiled(Box(2.0), weights), [0.0, 1.0, 2.0])
        np.testing.assert_array_equal(compiled(Box(0.5), weights), [0.0, 0.5, 0.5])
        assert compiled._cache_size() == 1

    @pytest.mark.parametrize("upper", [0.0, -1.0, float("nan")])
    def test_refuses_an_empty_box(self, upper: float) -> None:
        with pytest.raises(InputError, match=r"Box upper: got .*positive"):
            Box(upper)
