"""Discrete latents of single rows, such as the component of a mixture, summed out.

The model runs with the label of every row at each of its values. For a row the log-probabilities of its label and of
all that is observed in it add up, and the sum over values is its likelihood: what NumPyro's own enumeration gives
(``infer={"enumerate": "parallel"}``), for rows that share no discrete latent. Several labels take all combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.interop.numpyro.sites import Site

MOST_COMBINATIONS = 1_000
"""Runs of the model for each evaluation that are still worth it."""


def combinations_of(num_values: Mapping[str, int]) -> np.ndarray:
    """Numbers of values (C, labels), every combination once."""
    grid = np.indices(tuple(num_values.values())).reshape(len(num_values), -1).T
    require(
        len(grid) <= MOST_COMBINATIONS,
        "NumPyro model",
        got=f"discrete latents of each row with {len(grid):,} combinations of values ({dict(num_values)})",
        expected=f"at most {MOST_COMBINATIONS:,}, because the model runs once for each",
        fix="Write their sum as a factor of each row, or with fewer classes.",
    )
    return grid


def with_labels(names: tuple[str, ...], values: jax.Array) -> Callable[[Any], Any]:
    """A handler that gives the labels of all rows the values of these numbers."""
    from numpyro import handlers

    numbers = dict(zip(names, values, strict=True))

    def value_of(site: Any) -> Any:
        if site["type"] != "sample" or site["name"] not in numbers:
            return None
        distribution = site["fn"]
        support = distribution.enumerate_support(expand=False)
        return jnp.broadcast_to(support[numbers[site["name"]]], distribution.shape())

    return lambda model: handlers.substitute(model, substitute_fn=value_of)


def check_one_label(name: str, site: Site, num_rows: int) -> None:
    """A row has one label of a name, or its sum over values would not be one of the whole row."""
    require(
        int(np.prod(site.log_prob_shape)) == num_rows,
        f"latent site {name!r}",
        got=f"log-probabilities of shape {site.log_prob_shape} for {num_rows} rows: several discrete latents in each",
        expected="one discrete latent of a name in each row",
        fix="Make a row of each of them, or sum them out in the model (dist.MixtureSameFamily).",
    )
