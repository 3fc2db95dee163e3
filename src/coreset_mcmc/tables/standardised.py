"""A regression on standardised columns, as compiled steps see it.

eta = z_0 + x'z (+ offset) with independent priors on z_0, z and the logarithms of sigma, nu and alpha. Nothing here
depends on the table but shapes and the numbers of priors, which are the same for every table unless the user gives
them, so two tables of the same shape share one model and its compiled programs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.tables.families import FAMILIES
from coreset_mcmc.tables.priors import Prior, joint_log_density

INTERCEPT, COEFFICIENTS = "Intercept", "coefficients"
"""Keys of a position; those of positive parameters are "log_" and their name."""


@dataclass(frozen=True)
class Structure:
    """Everything that determines the compiled program."""

    family: str
    intercept: Prior | None
    coefficients: tuple[Prior, ...]
    positive: tuple[tuple[str, Prior], ...]
    has_offset: bool


def predictor(position: Position, batch: Batch) -> jax.Array:
    """eta of each row."""
    predicted = jnp.zeros(batch["x"].shape[0])
    if COEFFICIENTS in position:
        predicted = batch["x"] @ position[COEFFICIENTS]
    if INTERCEPT in position:
        predicted = predicted + position[INTERCEPT]
    return predicted + batch["offset"] if "offset" in batch else predicted


def logarithms(position: Position) -> dict[str, jax.Array]:
    """Of the positive parameters."""
    return {name.removeprefix("log_"): value for name, value in position.items() if name.startswith("log_")}


def _row_length(batch: Batch) -> jax.Array:
    return jnp.sqrt(1.0 + jnp.sum(batch["x"] ** 2, axis=1))


def _largest_change(largest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """softplus has a slope of at most one, so a row changes by no more than its predictor."""
    squares = [jnp.sum((proposal[name] - position[name]) ** 2) for name in position]
    return largest * jnp.sqrt(sum(squares, jnp.zeros(())))


@lru_cache
def standardised_model(structure: Structure) -> Model:
    """The model of standardised rows {"x": (N, p), "y": (N,)}, with "offset": (N,) if it has one."""
    family = FAMILIES[structure.family]

    def log_prior(position: Position) -> jax.Array:
        total = jnp.zeros(())
        if structure.intercept is not None:
            total = total + structure.intercept.log_density(position[INTERCEPT])
        if structure.coefficients:
            total = total + joint_log_density(structure.coefficients, position[COEFFICIENTS])
        for name, prior in structure.positive:
            total = total + prior.log_density(position[f"log_{name}"])
        return total

    def log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
        return family.log_density(logarithms(position), predicted, batch["y"])

    return Model.from_linear_predictor(
        log_prior,
        predictor,
        log_likelihood,
        change_bound=ChangeBound(_row_length, _largest_change) if structure.family == "bernoulli" else None,
        identity=asdict(structure),
        name=f"{structure.family} regression",
    )
