"""With all weights zero a kernel samples the prior, whatever the rows say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.models import logistic_regression
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.catalogue import entry
from tests.helpers.kernel_checks import NUM_CHAINS, advance, assert_plausible

ROWS = {"x": np.array([[1.0], [-2.0], [1e308]]), "y": np.array([1.0, 0.0, 1.0])}
"""The last row overflows the linear predictor: its likelihood is zero, or not a number, almost everywhere."""


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "num_steps"), [("univariate", 15), ("hit_and_run", 5)])
def test_zero_weights_give_the_cauchy_prior(name: str, num_steps: int, key: jax.Array) -> None:
    """One pass over the coordinates nearly forgets the start, so that kernel starts at the origin."""
    start_key, step_key = jax.random.split(key)
    target = CoresetTarget(jax.tree.map(jnp.asarray, ROWS), jnp.zeros(3), logistic_regression(1))
    exact = jax.random.cauchy(start_key, (NUM_CHAINS, 2))
    start = {"beta": jnp.zeros_like(exact) if name == "univariate" else exact}
    states, _ = advance(entry(name).make(2, 1.0), target, step_key, start, num_steps)
    moved = np.asarray(states.position["beta"])
    assert np.all(np.isfinite(moved))
    assert_plausible(np.array([stats.kstest(column, stats.cauchy.cdf).pvalue for column in moved.T]))
