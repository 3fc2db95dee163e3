"""A model is two pure functions: a log-prior and a per-row log-likelihood.

``log_likelihood(position, batch)`` returns one value per row of ``batch``, so the same function serves a coreset, a
minibatch and the full data. Terms that do not depend on the position may be dropped: they cancel when the gradient
estimate (eq. 4 of the paper) centres over chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from coreset_mcmc.errors import require
from coreset_mcmc.types import Batch, Key, Position


@dataclass(frozen=True)
class LinearPredictor:
    """The likelihood split into an affine predictor and what remains, for O(M) evaluation along a line.

    ``predictor(position, batch)`` must be affine in the position. Along ``position + t * direction`` it is then
    ``eta + t * slope``, and each evaluation costs one pass over the rows and no matrix product.
    """

    predictor: Callable[[Position, Batch], Any]
    log_likelihood: Callable[[Position, Any, Batch], jax.Array]


@dataclass(frozen=True, eq=False)
class Model:
    """A Bayesian model for rows that are independent given the position.

    Args:
        log_prior: ``position -> ()``, the log prior density up to a constant.
        log_likelihood: ``(position, batch) -> (B,)``, one value per row.
        initial_position: a pytree, or a function ``key -> pytree`` drawn once for each chain.
        linear_predictor: optional split of the likelihood that lets slice kernels skip matrix products.
        differentiable: whether gradients with respect to the position exist.
        check_data: optional function that raises an :class:`~coreset_mcmc.errors.InputError` on unsuitable data.
        dims: names of the dimensions of each variable, as in ArviZ.
        name: how the model is called in messages and files.
    """

    log_prior: Callable[[Position], jax.Array]
    log_likelihood: Callable[[Position, Batch], jax.Array]
    initial_position: Position | Callable[[Key], Position] | None = None
    linear_predictor: LinearPredictor | None = None
    differentiable: bool = True
    check_data: Callable[[Batch], None] | None = None
    dims: Mapping[str, tuple[str, ...]] | None = None
    name: str = "model"

    def __post_init__(self) -> None:
        for subject, function in (("log_prior", self.log_prior), ("log_likelihood", self.log_likelihood)):
            require(
                callable(function),
                f"Model {subject}",
                got=type(function).__name__,
                expected="a function",
                fix="Pass log_prior(position) and log_likelihood(position, batch).",
            )

    @classmethod
    def from_linear_predictor(
        cls,
        log_prior: Callable[[Position], jax.Array],
        predictor: Callable[[Position, Batch], Any],
        log_likelihood: Callable[[Position, Any, Batch], jax.Array],
        **options: Any,
    ) -> Model:
        """Build a model whose likelihood depends on an affine ``predictor(position, batch)``.

        ``log_likelihood(position, predicted, batch)`` may still read the position, for scale parameters and the like.
        """

        def whole_log_likelihood(position: Position, batch: Batch) -> jax.Array:
            return log_likelihood(position, predictor(position, batch), batch)

        return cls(
            log_prior, whole_log_likelihood, linear_predictor=LinearPredictor(predictor, log_likelihood), **options
        )
