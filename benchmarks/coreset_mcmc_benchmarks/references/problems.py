"""Four simulated problems, and what is known about the symmetries of their posteriors.

Labels of a mixture can be exchanged, and the signs of a product's factors flipped. NUTS never crosses from one copy to
another. Each draw is therefore moved by a random element of that group, which leaves the posterior as it is, so that
all copies have their exact share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc import models
from coreset_mcmc.models.model import Model
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.symmetries import first_factor_positive, permuted, sorted_by_mean, unchanged

DATA_SEED = 2_024
NUM_ROWS = 10_000


def as_they_are(position: Any) -> tuple[Any, float]:
    """Coordinates of NUTS that are those of the model."""
    return position, 0.0


def not_moved(rng: np.random.Generator, draws: Draws) -> Draws:
    """The random group element of a posterior without symmetries."""
    del rng
    return draws


@dataclass(frozen=True)
class ReferenceProblem:
    """A model with its data, and what is known about its symmetries.

    Args:
        make: from the number of rows, if it shall be another one, to the model and the data.
        fold: maps every draw to one representative of its symmetric copies.
        scatter: moves every draw by an independent, uniformly random element of the group.
        identified: further functions of a folded draw whose R-hat and ESS are checked.
        to_position: from the coordinates in which NUTS moves, held like a position, to the position and the log of the
            Jacobian; for a posterior that no trajectory follows in the coordinates of its model.
        target_accept: of NUTS; higher where the posterior is narrow and curved.
    """

    make: Callable[..., tuple[Model, Any]]
    fold: Callable[[Draws], Draws] = unchanged
    scatter: Callable[[np.random.Generator, Draws], Draws] = not_moved
    identified: Callable[[Draws], Draws] = lambda folded: {}
    to_position: Callable[[Any], tuple[Any, Any]] = as_they_are
    target_accept: float = 0.8


def gaussian_mixture(num_rows: int = NUM_ROWS) -> tuple[Model, Any]:
    """Two overlapping components."""
    return models.gaussian_mixture(2), models.gaussian_mixture_data(np.random.default_rng(DATA_SEED), num_rows)


def relabelled(rng: np.random.Generator, draws: Draws) -> Draws:
    """Components in random order."""
    return permuted(draws, np.argsort(rng.random(draws["means"].shape), axis=-1))


def unidentified_regression(num_rows: int = NUM_ROWS) -> tuple[Model, Any]:
    """The product of two factors."""
    data = models.unidentified_regression_data(np.random.default_rng(DATA_SEED), num_rows)
    return models.unidentified_regression(), data


def sign_flipped(rng: np.random.Generator, draws: Draws) -> Draws:
    """Both factors with a common random sign."""
    signs = rng.choice([-1.0, 1.0], size=(*draws["factors"].shape[:-1], 1))
    return {**draws, "factors": draws["factors"] * signs}


def product_of_factors(folded: Draws) -> Draws:
    """What the data identifies."""
    return {"product": folded["factors"].prod(axis=-1)}


def factors_from_product(coordinates: Any) -> tuple[Any, jax.Array]:
    """(v, p) to the factors a = sqrt|p| e^u and b = p/a with sinh u = v: the half-plane a > 0, straightened.

    (a, b) to (u, p) has Jacobian 1, and in v the prior along the curve is a Gaussian. In (a, b) itself NUTS diverges on
    the bends and its ESS is a tenth of the draws.
    """
    slant, product = coordinates["factors"]
    root, log_ratio = jnp.sqrt(jnp.abs(product)), jnp.arcsinh(slant)
    factors = jnp.stack([root * jnp.exp(log_ratio), jnp.sign(product) * root * jnp.exp(-log_ratio)])
    return {**coordinates, "factors": factors}, -0.5 * jnp.log1p(slant**2)


def hierarchical_logistic_regression(num_rows: int = NUM_ROWS) -> tuple[Model, Any]:
    """50 groups of unequal sizes."""
    data = models.hierarchical_logistic_regression_data(np.random.default_rng(DATA_SEED), num_rows)
    return models.hierarchical_logistic_regression(3, 50), data


def bradley_terry(num_rows: int = NUM_ROWS) -> tuple[Model, Any]:
    """40 players, most of whom play seldom."""
    data = models.bradley_terry_data(np.random.default_rng(DATA_SEED), num_rows, num_players=40)
    return models.bradley_terry(40), data


PROBLEMS: dict[str, ReferenceProblem] = {
    "gaussian-mixture": ReferenceProblem(gaussian_mixture, sorted_by_mean, relabelled, target_accept=0.99),
    "unidentified-regression": ReferenceProblem(
        unidentified_regression, first_factor_positive, sign_flipped, product_of_factors, factors_from_product, 0.9
    ),
    "hierarchical-logistic-regression": ReferenceProblem(hierarchical_logistic_regression, target_accept=0.9),
    "bradley-terry": ReferenceProblem(bradley_terry),
}
