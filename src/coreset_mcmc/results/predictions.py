"""The forms in which predictions are handed over: a tree in memory, or columns of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from coreset_mcmc.core.memory import require_room
from coreset_mcmc.core.on_use import on_use

if TYPE_CHECKING:
    import xarray
else:
    xarray = on_use("xarray")

EXPECTED, RESPONSES = "expected", "posterior_predictive"
"""Groups of a tree: what responses are on average, and new responses."""

Predictions = Mapping[str, Mapping[str, Any]]
"""By group and name; rows come first."""


def in_memory(
    parts: Iterator[Predictions], num_rows: int, drawn: Predictions, quantiles: tuple[float, ...] | None
) -> xarray.DataTree:
    """All predictions at once; ``drawn`` has the shape (1, S, ...) of the draws for one row."""
    places = [(group, name) for group, values in drawn.items() for name in values]
    whole = {place: _room_for(drawn[place[0]][place[1]], num_rows, quantiles) for place in places}
    require_room(
        "predict",
        sum(num_rows * int(np.prod(shape[1:])) * kind.itemsize for shape, kind in whole.values()),
        fix='Write summaries to a file as they come, with to="predictions.parquet", or predict fewer rows.',
    )
    arrays = {place: np.empty(shape, kind) for place, (shape, kind) in whole.items()}
    start = 0
    for part in parts:
        for group, name in places:
            values = part[group][name]
            stop = start + len(values)
            arrays[group, name][start:stop] = values
        start = stop
    count = next(iter(next(iter(drawn.values())).values())).shape[1]
    datasets = {}
    for group in drawn:
        own = {name: array for (place, name), array in arrays.items() if place == group}
        datasets[group] = _draws_dataset(own, count) if quantiles is None else _summary_dataset(own, quantiles)
    return xarray.DataTree.from_dict(datasets)


def in_columns(part: Predictions, quantiles: tuple[float, ...]) -> dict[str, np.ndarray]:
    """A column ``<name>_<statistic>`` for each number of a row, ``<name>_expected_<statistic>`` for what is expected.

    Of a response that is an array there is one for each place.
    """
    columns = {}
    for group, responses in part.items():
        between = "_expected_" if group == EXPECTED else "_"
        for name, values in responses.items():
            for place in np.ndindex(*values.shape[1:-1]):
                label = f"{name}{list(place)}" if place else name
                for number, statistic in enumerate(statistics_of(quantiles)):
                    columns[label + between + statistic] = np.ascontiguousarray(values[(slice(None), *place, number)])
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
