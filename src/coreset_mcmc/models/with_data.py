"""A model and its rows: what it learns from them before anything starts, and which of them it explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.convert import to_batch
from coreset_mcmc.data.leaf import widened
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import Source
from coreset_mcmc.models.model import Model

NUM_LEAVES, NUM_PER_LEAF = 8, 128
"""From how many places among rows that are not in memory a model sees some, and how many there."""


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
    source = data.source if isinstance(data, Rows) else data
    if not isinstance(source, Source):
        return model.bind(to_batch(data))
    whole = source.whole()
    return replace(model.bind(_some_of(source) if whole is None else whole), data=data)


def _some_of(source: Source) -> Batch:
    """Rows from a few places that are spread over all of them, so that few leaves are read."""
    layout = source.layout
    places = []
    for leaf in np.unique(np.linspace(0, layout.num_leaves - 1, NUM_LEAVES).astype(np.int64)):
        start, stop = layout.rows_of_leaf(int(leaf))
        places.append(np.unique(np.linspace(start, stop - 1, NUM_PER_LEAF).astype(np.int64)))
    return widened(source.take(np.concatenate(places)))


def check_columns(model: Model, rows: Rows) -> None:
    """Refuse a scan in place of the rows that a model holds unless it has the same columns.

    A model that is bound to its rows sees for itself whether they will do.
    """
    is_own = rows.source is (model.data.source if isinstance(model.data, Rows) else model.data)
    if model.data is None or model.bind is not None or is_own or rows.source.whole() is not None:
        return
    require(
        not model.fixed_data,
        f"data for model {model.name!r}",
        got="other rows than those that the model was built with",
        expected=f"no others, because {model.fixed_data}",
        fix="Leave the data out, cm.fit(model); or build the model on all rows: cm.from_formula takes a scan, and so "
        "does a PyMC model if all of its data are in pm.Data.",
    )
    if not isinstance(model.data, Mapping):
        return
    held = {str(name): np.shape(values)[1:] for name, values in model.data.items() if values is not None}
    schema = rows.source.schema
    given = {str(name): row.shape for name, row in schema.items()} if isinstance(schema, Mapping) else {}
    require(
        held == given,
        f"data for model {model.name!r}",
        got=_difference(held, given),
        expected=f"the columns that the model was built with: {', '.join(_described(held))}",
        fix="Say in the scan which columns they are, e.g. columns={'x': ['x1', 'x2'], 'y': 'y'}.",
    )


def _difference(held: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]) -> str:
    """In what the columns that are given are not those that a model holds."""
    missing = [f"nothing for {name}" for name in held if name not in given]
    unknown = [f"{name}, which it does not have" for name in given if name not in held]
    other = {name: shape for name, shape in given.items() if name in held and shape != held[name]}
    return "; ".join([*missing, *unknown, *_described(other)])


def _described(columns: Mapping[str, tuple[int, ...]]) -> list[str]:
    return [
        f"{name} ({' x '.join(map(str, shape))} numbers a row)" if shape else f"{name} (one number a row)"
        for name, shape in columns.items()
    ]


def observed_of(model: Model, rows: Any) -> dict[str, np.ndarray]:
    """The responses among the rows of a coreset, by the names under which the model observes them."""
    if callable(model.observed):
        return {name: np.asarray(values) for name, values in model.observed(rows).items()}
    return {name: np.asarray(rows[name]) for name in model.observed if rows[name] is not None}
