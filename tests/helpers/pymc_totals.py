"""The log-density of a model that came through PyMC beside PyMC's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.models.independence import random_positions


def positions_of(model: cm.Model, count: int = 3) -> list[Any]:
    """Random ones around the start."""
    many = random_positions(model.initial_position, count)
    return [jax.tree.map(lambda leaf, place=place: leaf[place], many) for place in range(count)]


def total(model: cm.Model, position: Any) -> float:
    """Ours, of all rows that the model holds."""
    return float(model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data)))


def assert_totals_agree(model: Any, ours: cm.Model) -> None:
    """With PyMC's reference interpreter, at random positions of the unconstrained model."""
    function = model.compile_logp(mode="FAST_COMPILE")
    for position in positions_of(ours):
        theirs = float(function({key: np.asarray(value) for key, value in position.items()}))
        np.testing.assert_allclose(total(ours, position), theirs, rtol=1e-8)
