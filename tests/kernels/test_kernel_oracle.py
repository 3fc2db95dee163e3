"""Our kernels against BlackJAX's: from one fixed start, one step must have the same law.

This says more than invariance: both follow the same published algorithm, so even the transition must agree.
"""

from __future__ import annotations

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.kernels import HitAndRunSlice, Kernel, RandomWalk, UnivariateSlice, from_blackjax
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.catalogue import entry
from tests.helpers.exact_targets import BIMODAL, NORMAL_GAMMA
from tests.helpers.kernel_checks import NUM_CHAINS, advance, assert_plausible, compare_draws, is_rejected


def compare_steps(key: Key, ours: Kernel, theirs: Kernel, target: CoresetTarget, start: Position) -> np.ndarray:
    """p-values of the comparison of one step of each kernel, all chains starting at the same point."""
    positions = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (NUM_CHAINS, *np.shape(leaf))), start)
    samples = [
        advance(kernel, target, one_key, positions, 1)[0].position
        for kernel, one_key in zip((ours, theirs), jax.random.split(key), strict=True)
    ]
    return compare_draws(target, *samples)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (entry("hit_and_run").make(3, 1.0), "slice_sampling"),
        (entry("univariate").make(3, 1.0), "coordinate_slice"),
        (RandomWalk(0.5), "additive_step"),
    ],
    ids=["hit_and_run", "univariate", "random_walk"],
)
def test_same_step_on_a_skewed_target(ours: Kernel, theirs: str, key: jax.Array) -> None:
    start = {"mean": np.array([1.5, -2.0]), "log_precision": np.array(-1.0)}
    assert_plausible(compare_steps(key, ours, entry(theirs).make(3, 1.0), NORMAL_GAMMA.target(), start))


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("kernel_class", "max_doublings"), [(HitAndRunSlice, 2), (UnivariateSlice, 20)])
def test_same_step_with_few_doublings(kernel_class: type, max_doublings: int, key: jax.Array) -> None:
    """The cap is part of the law: with another one the same comparison must reject."""
    ours = kernel_class(width=0.4, max_doublings=max_doublings)
    theirs = from_blackjax(blackjax.slice_sampling, width=0.4, max_expansions=2)
    probabilities = compare_steps(key, ours, theirs, BIMODAL.target(), {"theta": np.array(-0.5)})
    assert is_rejected(probabilities) == (max_doublings != 2)


@pytest.mark.full
@pytest.mark.statistical
def test_same_step_on_logistic_regression(key: jax.Array) -> None:
    """Ours evaluates the linear predictor along the line, theirs the whole model."""
    rng = np.random.default_rng(3)
    rows = {"x": jnp.asarray(rng.normal(size=(30, 2))), "y": jnp.asarray(rng.integers(0, 2, 30), float)}
    weights = jnp.asarray(rng.exponential(size=30) * rng.integers(0, 2, 30))
    target = CoresetTarget(rows, weights, logistic_regression(2))
    theirs = from_blackjax(blackjax.slice_sampling, width=10.0, max_expansions=20)
    assert_plausible(compare_steps(key, HitAndRunSlice(), theirs, target, {"beta": np.array([0.5, -1.5, 2.0])}))
