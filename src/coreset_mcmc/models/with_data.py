"""A model and its rows: what it learns from them before anything starts, and which of them it explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import to_batch
from coreset_mcmc.models.model import Model


@double_precision
def bound(model: Model, data: Any) -> Model:
    """The model once it has seen its data; most models need not."""
    if model.bind is None:
        return model
    require(
        data is not None,
        f"model {model.name!r}",
        got="no data",
        expected="data, which tell how many parameters there are",
        fix="Pass the data, too.",
    )
    return model.bind(to_batch(data))


def observed_of(model: Model, rows: Any) -> dict[str, np.ndarray]:
    """The responses among the rows of a coreset, by the names under which the model observes them."""
    if callable(model.observed):
        return {name: np.asarray(values) for name, values in model.observed(rows).items()}
    return {name: np.asarray(rows[name]) for name in model.observed if rows[name] is not None}
