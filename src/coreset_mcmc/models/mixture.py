"""A mixture of Gaussians whose components are exchangeable: K! modes of equal mass.

p(y) = sum_k softmax(logits)_k N(y | means_k, exp(log_scales_k)^2) with means_k ~ N(0, 5^2), log_scales_k ~ N(0, 1) and
logits_k ~ N(0, 1), independent and the same for every k. Relabelling the components changes neither prior nor
likelihood, and no order is imposed on them: a Gaussian at one mode misses all but 1/K! of the mass. The logits have one
coordinate more than the weights, so that they are exchangeable too; their sum keeps its prior.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.special import inverse_scale

PRIOR_SCALE_OF_MEANS = 5.0


def _log_prior(position: Position) -> jax.Array:
    means = position["means"] / PRIOR_SCALE_OF_MEANS
    return -0.5 * (jnp.sum(means**2) + jnp.sum(position["log_scales"] ** 2) + jnp.sum(position["logits"] ** 2))


def _log_likelihood(position: Position, batch: Batch) -> jax.Array:
    """log sum_k w_k N(y | mu_k, s_k^2) without log(2 pi) / 2; rows run along the last axis, which fills SIMD lanes."""
    y = batch["y"] if isinstance(batch, dict) else batch
    standardised = (y - position["means"][:, None]) * inverse_scale(position["log_scales"])[:, None]
    heights = jax.nn.log_softmax(position["logits"]) - position["log_scales"]
    return jax.nn.logsumexp(heights[:, None] - 0.5 * standardised**2, axis=0)


def _check_data(data: Any) -> None:
    y = np.asarray(data["y"]) if isinstance(data, dict) and "y" in data else data
    shape = getattr(y, "shape", None)
    got = f"keys {sorted(map(str, y))}" if isinstance(y, dict) else type(y).__name__
    require(
        shape is not None and len(shape) == 1,
        "gaussian_mixture data",
        got=got if shape is None else f"shape {shape}",
        expected='an array of shape (N,), or {"y": (N,)}',
        fix="Pass one number per row.",
    )


@lru_cache
def gaussian_mixture(num_components: int = 2) -> Model:
    """y ~ sum_k w_k N(means_k, exp(log_scales_k)^2), labels left free. Data: an array (N,) or {"y": (N,)}."""
    require_count("num_components", num_components, at_least=1, fix="Pass the number of Gaussians, e.g. 2.")

    def initial_position(key: Key) -> Position:
        """Means drawn apart: where they coincide the gradient is the same for all and never parts them."""
        zeros = jnp.zeros(num_components)
        return {"means": 2.0 * jax.random.normal(key, (num_components,)), "log_scales": zeros, "logits": zeros}

    return Model(
        _log_prior,
        _log_likelihood,
        initial_position=initial_position,
        check_data=_check_data,
        dims=dict.fromkeys(("means", "log_scales", "logits"), ("component",)),
        name="gaussian_mixture",
    )


def gaussian_mixture_data(rng: np.random.Generator, num_rows: int = 10_000) -> dict[str, np.ndarray]:
    """Two components that overlap, so that each mode is skewed as well: 0.4 N(-0.6, 1) + 0.6 N(0.9, 0.8^2)."""
    is_first = rng.random(num_rows) < 0.4
    return {"y": np.where(is_first, -0.6, 0.9) + np.where(is_first, 1.0, 0.8) * rng.normal(size=num_rows)}
