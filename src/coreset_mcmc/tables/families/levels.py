"""One of K levels. Ordered ones by thresholds, others by a predictor for each level but the first.

    cumulative    P(y <= k) = logistic(threshold_k - eta), thresholds in ascending order, no intercept
    categorical   P(y = k) proportional to exp(eta_k), eta_0 = 0

With a and b the thresholds below and above a level, minus eta, P = sigma(b) sigma(-a) (1 - exp(a - b)): logarithms of
products instead of a difference of nearly equal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key
from coreset_mcmc.models.special import softplus
from coreset_mcmc.tables.families.family import ORDERED, Family, Parameter, Unconstrained, ascending, steps
from coreset_mcmc.tables.families.links import inside, link_of, log_one_minus_exp

LARGEST_LOG_STEP = 50.0


@dataclass(frozen=True)
class OfLevels(Family):
    """What responses with levels share: y is the number of the level."""

    takes_levels: ClassVar = True
    instead: ClassVar = "Use family='bernoulli' for two outcomes."

    def log_probabilities(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """Of every level (B, K)."""
        raise NotImplementedError

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return jnp.exp(self.log_probabilities(parameters, predictor))

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return jax.random.categorical(key, self.log_probabilities(parameters, predictor)).astype(jnp.int32)

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        chosen = jnp.asarray(batch["y"]).astype(jnp.int32)
        every = self.log_probabilities(parameters, predictor)
        return jnp.take_along_axis(every, chosen[..., None], axis=-1, mode="clip")[..., 0]

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        result: np.ndarray = ~((y >= 0) & (y < self.num_levels) & (y == np.floor(y)))
        return result

    def statistics(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [(y == level).astype(float) for level in range(self.num_levels)]


@dataclass(frozen=True)
class Cumulative(OfLevels):
    """Ordered levels: a latent logistic variable around eta, cut at thresholds."""

    parameters: ClassVar = (Parameter("threshold", ORDERED),)
    links: ClassVar = ("logit",)
    expects: ClassVar = "one of three or more levels in an order"
    is_ordered: ClassVar = True

    def log_probabilities(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        raw = jnp.concatenate(
            [parameters["threshold"][:1], jnp.clip(parameters["threshold"][1:], -LARGEST_LOG_STEP, LARGEST_LOG_STEP)]
        )
        shifted = ascending(raw) - jnp.asarray(predictor)[..., None]
        below = -softplus(-shifted)
        above = -softplus(shifted)
        between = below[..., 1:] + above[..., :-1] + log_one_minus_exp(raw[1:])
        return jnp.concatenate([below[..., :1], between, above[..., -1:]], axis=-1)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        shares = np.maximum(means, 1e-6) / np.maximum(means, 1e-6).sum()
        cuts = [link_of("logit", inside(share)) for share in np.cumsum(shares)[:-1]]
        return None, {"threshold": steps(np.maximum.accumulate(np.array(cuts) + 1e-9 * np.arange(len(cuts))))}


@dataclass(frozen=True)
class Categorical(OfLevels):
    """Levels without an order: the softmax of a predictor for each; that of the first level is zero."""

    links: ClassVar = ("softmax",)
    log_concave: ClassVar = True
    expects: ClassVar = "one of three or more levels"

    @property
    def num_predictors(self) -> int:
        return self.num_levels - 1

    def log_probabilities(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        zero = jnp.zeros_like(predictor[..., :1])
        return jax.nn.log_softmax(jnp.concatenate([zero, predictor], axis=-1), axis=-1)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        shares = np.maximum(means, 1e-6)
        return np.log(shares[1:] / shares[0]), {}
