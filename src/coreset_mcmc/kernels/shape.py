"""The shape of a posterior from a few draws of it: a scale for the directions of the hit-and-run kernel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Position

SHRINKAGE = 5.0
"""Pseudo-draws without correlation that are added to the draws, so that few of them still give a factor."""


def shrunk_factor(flat: jax.Array) -> jax.Array:
    """Lower Cholesky factor (d, d) of the covariance of J flat draws (J, d), its correlations shrunk.

    The standard deviations alone if it has none, and the identity if the draws have no finite covariance.
    """
    covariance = jnp.atleast_2d(jnp.cov(flat, rowvar=False))
    share = flat.shape[0] / (flat.shape[0] + SHRINKAGE)
    variances = jnp.maximum(jnp.diag(covariance), jnp.finfo(flat.dtype).tiny)
    factor = jnp.linalg.cholesky(share * covariance + (1.0 - share) * jnp.diag(variances))
    alone = jnp.where(jnp.all(jnp.isfinite(variances)), jnp.diag(jnp.sqrt(variances)), jnp.eye(flat.shape[1]))
    return jnp.where(jnp.all(jnp.isfinite(factor)), factor, alone)


def shrunk_factor_on_host(positions: Position) -> np.ndarray:
    """The same for draws with a leading axis, in NumPy."""
    flat = np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(positions)], axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        covariance = np.atleast_2d(np.cov(flat.astype(np.float64), rowvar=False))
    if not np.all(np.isfinite(covariance)):
        return np.eye(flat.shape[1])
    share = len(flat) / (len(flat) + SHRINKAGE)
    variances = np.maximum(np.diag(covariance), np.finfo(np.float64).tiny)
    try:
        return np.linalg.cholesky(share * covariance + (1.0 - share) * np.diag(variances))
    except np.linalg.LinAlgError:
        return np.diag(np.sqrt(variances))


def check_factor(name: str, scale: Any, position: Position) -> None:
    """Refuse what is no factor (d, d) of the covariance of such positions."""
    dimension = sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))
    require(
        jnp.shape(scale) == (dimension, dimension),
        name,
        got=f"shape {jnp.shape(scale)}",
        expected=f"a factor of the covariance of the {dimension} parameters, shape ({dimension}, {dimension})",
        fix="Pass numpy.linalg.cholesky of a covariance.",
    )
