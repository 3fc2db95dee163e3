"""Densities of one parameter in which no search finds a mode, and what it says."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.status import Status
from coreset_mcmc.models.model import Model

ROWS = np.ones(4)


def one_parameter(log_likelihood, start):
    """A model with a flat prior."""
    return Model(lambda position: jnp.zeros(()), log_likelihood, initial_position=np.array(start))


without_a_peak = pytest.mark.parametrize(
    ("log_likelihood", "start", "status"),
    [
        (lambda position, row: jnp.zeros_like(row) * position, 1.0, Status.HESSIAN_NOT_NEGATIVE_DEFINITE),
        (lambda position, row: row * position, 1.0, Status.HESSIAN_NOT_NEGATIVE_DEFINITE),
        (lambda position, row: -row * jnp.abs(position) ** 1.5, 0.0, Status.DERIVATIVES_NOT_FINITE),
    ],
    ids=["flat", "rising without end", "no second derivative"],
)
