"""The forms in which predictions are handed over: a tree in memory, or columns of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray

from coreset_mcmc.core.memory import require_room

GROUP = "posterior_predictive"


def in_memory(
    parts: Iterator[dict[str, np.ndarray]],
    num_rows: int,
    drawn: Mapping[str, Any],
    quantiles: tuple[float, ...] | None,
) -> xarray.DataTree:
    """All predictions at once; ``drawn`` has the shape (1, S, ...) of the draws for one row."""
    whole = {name: _room_for(leaf, num_rows, quantiles) for name, leaf in drawn.items()}
    require_room(
        "predict",
        sum(num_rows * int(np.prod(shape[1:])) * kind.itemsize for shape, kind in whole.values()),
        fix='Write summaries to a file as they come, with to="predictions.parquet", or predict fewer rows.',
    )
    arrays = {name: np.empty(shape, kind) for name, (shape, kind) in whole.items()}
    start = 0
    for part in parts:
        for name, values in part.items():
            stop = start + len(values)
            arrays[name][start:stop] = values
        start = stop
    count = next(iter(drawn.values())).shape[1]
    dataset = _draws_dataset(arrays, count) if quantiles is None else _summary_dataset(arrays, quantiles)
    return xarray.DataTree.from_dict({GROUP: dataset})


def in_columns(part: Mapping[str, np.ndarray], quantiles: tuple[float, ...]) -> dict[str, np.ndarray]:
    """A column ``<name>_<statistic>`` for each number of a row; of a response that is an array, one for each place."""
    columns = {}
    for name, values in part.items():
        for place in np.ndindex(*values.shape[1:-1]):
            label = f"{name}{list(place)}" if place else name
            for number, statistic in enumerate(statistics_of(quantiles)):
                columns[f"{label}_{statistic}"] = np.ascontiguousarray(values[(slice(None), *place, number)])
    return columns


def statistics_of(quantiles: tuple[float, ...]) -> list[str]:
    """What each row gets, by name."""
    return ["mean", "sd", *(f"q{quantile:g}" for quantile in quantiles)]


def _room_for(leaf: Any, num_rows: int, quantiles: tuple[float, ...] | None) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if quantiles is None:
        return (num_rows, *leaf.shape[1:]), np.dtype(leaf.dtype)
    return (num_rows, *leaf.shape[2:], len(statistics_of(quantiles))), np.dtype(np.float64)


def _summary_dataset(values: dict[str, np.ndarray], quantiles: tuple[float, ...]) -> xarray.Dataset:
    return xarray.Dataset(
        {name: (["row", *_inner(name, array, 2), "statistic"], array) for name, array in values.items()},
        coords={"statistic": statistics_of(quantiles)},
    )


def _draws_dataset(values: dict[str, np.ndarray], count: int) -> xarray.Dataset:
    return xarray.Dataset(
        {
            name: (["chain", "draw", "row", *_inner(name, array, 2)], np.moveaxis(array, 1, 0)[None])
            for name, array in values.items()
        },
        coords={"chain": [0], "draw": np.arange(count)},
    )


def _inner(name: str, array: np.ndarray, num_known: int) -> list[str]:
    return [f"{name}_dim_{axis}" for axis in range(array.ndim - num_known)]
