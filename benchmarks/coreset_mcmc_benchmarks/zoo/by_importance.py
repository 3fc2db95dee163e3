"""The truth of smooth posteriors with one mode and several parameters: importance sampling from the mode, all rows.

Draws of a Student t around the mode with the inverse Hessian as its scale are weighted to the posterior itself. For
regressions with enough rows the weights are nearly even; if their effective number is small, this raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import multivariate_t

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.verdicts.problems import Moments
from coreset_mcmc_benchmarks.zoo.grids import Place, log_posterior
from coreset_mcmc_benchmarks.zoo.kept import kept

DRAWS, FEWEST, FREEDOM = 20_000, 2_000.0, 30
STEPS, TOLERANCE = 200, 1e-10

Whole = Callable[[jax.Array], jax.Array]


def climbed(whole: Whole, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method with halved steps, and the Hessian of minus the log-density at its end."""
    value, gradient, hessian = jax.jit(whole), jax.jit(jax.grad(whole)), jax.jit(jax.hessian(whole))
    point = jnp.asarray(start)
    for _ in range(STEPS):
        step = jnp.linalg.solve(-hessian(point), gradient(point))
        size, here = 1.0, value(point)
        while not value(point + size * step) >= here and size > 1e-10:
            size /= 2
        if float(gradient(point) @ step) < TOLERANCE or size <= 1e-10:
            break
        point = point + size * step
    return np.asarray(point), np.asarray(-hessian(point))


@kept
def importance_moments(model: cm.Model, rows: Any, start: np.ndarray, place: Place, seed: int = 0) -> Moments:
    """Mean and covariance of the coordinates that ``place`` makes positions of."""
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, rows)

        def whole(point: jax.Array) -> jax.Array:
            position = place(point)
            return model.log_prior(position) + jnp.sum(model.log_likelihood(position, data))

        mode, precision = climbed(whole, np.asarray(start, float))
    proposal = multivariate_t(mode, np.linalg.inv(precision), df=FREEDOM, allow_singular=True)
    points = np.atleast_2d(proposal.rvs(DRAWS, random_state=np.random.default_rng(seed)))
    log_weights = log_posterior(model, rows, place, points) - proposal.logpdf(points)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    effective = float(1.0 / np.sum(weights**2))
    if effective < FEWEST:
        raise ValueError(f"Importance sampling is no truth here: {effective:.0f} effective draws.")
    mean = weights @ points
    centred = points - mean
    return Moments(mean, (centred * weights[:, None]).T @ centred, effective)
