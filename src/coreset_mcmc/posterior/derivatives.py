"""Whether a log-density has the derivatives that training would like, found out without computing any.

Some operations have none: an incomplete beta function in its parameters, or, in reverse mode, a loop whose length
depends on the position. JAX says so while it traces, wherever that happens to be. So first and second derivatives are
traced once, before any work; a model that lacks them is trained and sampled by what needs none.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.model import Model


def without_missing_derivatives(model: Model, rows: Rows, positions: Position) -> Model:
    """The model, declared not differentiable, with a warning, if its derivatives cannot be had.

    ``positions`` have a leading axis. Models by a linear predictor are differentiated in the predictor and pass.
    """
    position = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[0]), positions)
    is_continuous = all(np.issubdtype(leaf.dtype, np.floating) for leaf in jax.tree.leaves(position))
    if not model.differentiable or model.linear_predictor is not None or not is_continuous:
        return model
    reason = _missing(model, rows, position)
    if reason is None:
        return model
    warnings.warn(
        f"Model {model.name!r} has no derivatives ({reason}). It is trained without them and sampled by slices, which "
        "takes longer.",
        stacklevel=2,
    )
    compiled = None if model.compiled is None else replace(model.compiled, differentiable=False)
    return replace(model, differentiable=False, compiled=compiled)


def _missing(model: Model, rows: Rows, position: Position) -> str | None:
    """What JAX says about the first or second derivatives; None if they are there."""

    def total(at: Position, batch: Any) -> jax.Array:
        return model.log_prior(at) + jnp.sum(model.log_likelihood(at, batch))

    def curvature(at: Position, batch: Any) -> Any:
        return jax.jvp(lambda place: jax.grad(total)(place, batch), (at,), (at,))

    try:
        jax.eval_shape(curvature, position, rows.types(1))
    except Exception as error:  # the values could be traced; whatever is raised here is about derivatives
        words = next(iter(str(error).strip().splitlines()), "")
        return words.rstrip(".") or type(error).__name__
    return None
