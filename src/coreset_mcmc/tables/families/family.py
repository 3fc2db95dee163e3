"""What a family is: one interface for densities, expected responses and new responses.

A family knows the linear predictor eta of each row, its own parameters on the scale on which chains move (logarithms of
positive ones, logits of probabilities), and the columns of the rows beside the predictors: ``y``, and where they belong
to the response ``trials`` and ``censored``. Everything else about a regression (standardisation, priors, start values,
checks, predictions) asks the family through this class and never for its name.

Densities are full ones, and finite with finite gradients at extreme arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.types import Batch, Key

POSITIVE, UNIT, ORDERED = "positive", "unit", "ordered"
"""What parameters can be: above zero, between zero and one, or a vector in ascending order."""
PREFIXES = {POSITIVE: "log_", UNIT: "logit_", ORDERED: "ordered_"}
"""Of their keys in a position."""

Unconstrained = Mapping[str, jax.Array]
"""Parameters of the family by name, on the scale on which chains move."""
TRIALS, CENSORED = "trials", "censored"
"""Keys of what belongs to a response beside ``y``: how often it was tried, and whether it is a lower bound only."""


class Parameter(NamedTuple):
    """A parameter beside the coefficients."""

    name: str
    support: str = POSITIVE

    @property
    def key(self) -> str:
        """In a position."""
        return PREFIXES[self.support] + self.name


@dataclass(frozen=True)
class Family(ABC):
    """A distribution of the response with a link; two of the same kind are equal."""

    name: str
    link: str
    num_levels: int = 0
    """Of a response that is one of several levels, known once the table is."""

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    links: ClassVar[tuple[str, ...]] = ()
    """That can be chosen; the first is the default."""
    expects: ClassVar[str] = "numbers"
    """What a response has to be, in words."""
    instead: ClassVar[str] = "Choose another family."
    """What to do with other responses."""
    has_scale: ClassVar[bool] = False
    """Whether the response has a unit and an origin of its own, and is standardised with the predictors."""
    is_continuous: ClassVar[bool] = False
    takes_levels: ClassVar[bool] = False
    """Whether the response is one of three or more levels."""
    is_ordered: ClassVar[bool] = False
    """Whether thresholds take the place of an intercept."""
    takes_trials: ClassVar[bool] = False
    takes_censored: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False
    """Whether the log-density is concave in predictors and parameters together, with any link."""

    @property
    def num_predictors(self) -> int:
        """Linear predictors of a row."""
        return 1

    @property
    def divides_by_mean(self) -> bool:
        """Whether responses are divided by their mean: a link that is no logarithm has the inverse of their unit."""
        return self.link == "inverse"

    @abstractmethod
    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        """Of the responses of a batch (B,)."""

    @abstractmethod
    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """The expected response of each row (B,); the probability of each level (B, K) of a response with levels.

        Of a binomial response it is the expected share of successes, whatever the number of trials.
        """

    @abstractmethod
    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        """New responses (B,), numbers of levels for a response with levels. ``batch`` needs no ``y``."""

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Which responses the family cannot have; None if it can have any."""
        del y, batch
        return None

    def outcomes(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows that pull the predictor up, and that pull it down; a column that parts them has an endless effect."""
        del y, batch
        return None

    def statistics(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Numbers of each row whose means tell where chains start."""
        del batch
        return [y]

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        """The predictor, and the parameters on the scale of chains, of rows alike with these mean statistics."""
        raise NotImplementedError


def natural(parameter: Parameter, value: Any) -> Any:
    """From the scale of chains to that of the user."""
    if parameter.support == POSITIVE:
        return jax.numpy.exp(value)
    return jax.nn.sigmoid(value) if parameter.support == UNIT else ascending(value)


def ascending(value: Any) -> Any:
    """The first number, and logarithms of the steps to the others, as numbers in ascending order."""
    return jax.numpy.cumsum(jax.numpy.concatenate([value[:1], jax.numpy.exp(value[1:])]))


def steps(ordered: np.ndarray) -> np.ndarray:
    """The inverse of :func:`ascending`."""
    return np.concatenate([ordered[:1], np.log(np.diff(ordered))])
