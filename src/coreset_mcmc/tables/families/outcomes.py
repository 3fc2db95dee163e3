"""Two outcomes: y ~ Bernoulli(p), and k of n trials, y ~ Binomial(n, p), with p = link^-1(eta)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key
from coreset_mcmc.models.special import log_gamma, softplus
from coreset_mcmc.tables.families.family import TRIALS, Family, Unconstrained
from coreset_mcmc.tables.families.links import inside, link_of, log_probabilities


@dataclass(frozen=True)
class Bernoulli(Family):
    """0 or 1."""

    links: ClassVar = ("logit", "probit", "cloglog")
    log_concave: ClassVar = True
    expects: ClassVar = "0 or 1 in every row"
    instead: ClassVar = "Recode it, e.g. {y > 0} or y['yes'] for text."

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        y = batch["y"]
        if self.link == "logit":
            return -softplus((1.0 - 2.0 * y) * predictor)
        success, failure = log_probabilities(self.link, predictor)
        return jnp.where(y > 0, success, failure)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return jnp.exp(log_probabilities(self.link, predictor)[0])

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return jax.random.bernoulli(key, self.expected(parameters, predictor)).astype(jnp.int32)

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        result: np.ndarray = (y != 0) & (y != 1)
        return result

    def outcomes(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        return y > 0, ~(y > 0)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return link_of(self.link, inside(means[0])), {}


@dataclass(frozen=True)
class Binomial(Family):
    """Successes among trials."""

    links: ClassVar = ("logit", "probit", "cloglog")
    log_concave: ClassVar = True
    expects: ClassVar = "whole numbers from 0 to the number of trials, which is a whole number of at least 1"
    instead: ClassVar = "Write p(successes, trials) ~ ..., or name the column of trials."
    takes_trials: ClassVar = True

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        y, trials = batch["y"], batch[TRIALS]
        success, failure = log_probabilities(self.link, predictor)
        ways = log_gamma(trials + 1.0) - log_gamma(y + 1.0) - log_gamma(trials - y + 1.0)
        of_success = jnp.where(y > 0, y * success, 0.0)
        return ways + of_success + jnp.where(trials > y, (trials - y) * failure, 0.0)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return jnp.exp(log_probabilities(self.link, predictor)[0])

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return jax.random.binomial(key, batch[TRIALS], self.expected(parameters, predictor), predictor.shape)

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        trials = batch[TRIALS]
        are_trials = (trials >= 1) & (trials == np.floor(trials))
        result: np.ndarray = ~((y >= 0) & (y == np.floor(y)) & (y <= trials) & are_trials)
        return result

    def outcomes(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        return y > 0, y < batch[TRIALS]

    def statistics(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [y, batch[TRIALS]]

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return link_of(self.link, inside(means[0] / means[1])), {}
