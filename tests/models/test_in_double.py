"""Densities in single precision."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm


@pytest.mark.full
@pytest.mark.parametrize("method", [None, cm.NUTS(num_warmup=50)], ids=["default", "nuts"])
def test_densities_in_single_precision(method):
    """They are widened where they enter; the mean of a Gaussian is what it is."""
    data = {"y": np.random.default_rng(0).normal(1.0, 1.0, 400)}
    model = cm.Model(
        lambda position: (-0.5 * (position["mean"] / 10) ** 2).astype(jnp.float32),
        lambda position, batch: -0.5 * (batch["y"].astype(jnp.float32) - position["mean"].astype(jnp.float32)) ** 2,
        {"mean": 0.0},
    )
    fitted = cm.fit(model, data, coreset_size=40, draws=200, tune=50, random_seed=0, progressbar=False, method=method)
    draws = fitted.posterior["mean"].to_numpy()
    assert draws.dtype == np.float64
    ess = float(cm.metrics.bulk_ess(draws[..., None])[0])
    assert draws.mean() == pytest.approx(data["y"].mean(), abs=4.5 * 0.05 / np.sqrt(ess) + 0.01 * 0.05)
