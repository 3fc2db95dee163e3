"""Checks of the data that the ready-made models share."""

from __future__ import annotations

from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError, require


def regression_columns(data: Any, num_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The design and the response of ``{"x": (N, p), "y": (N,)}``, or an error that says what is missing."""
    if not (isinstance(data, dict) and {"x", "y"} <= set(data)):
        got = f"keys {sorted(map(str, data))}" if isinstance(data, dict) else type(data).__name__
        raise InputError(
            "regression data",
            got=got,
            expected='a mapping {"x": (N, p) features, "y": (N,) response}',
            fix='Pass data={"x": features, "y": response}.',
        )
    x, y = np.asarray(data["x"]), np.asarray(data["y"])
    require(
        x.ndim == 2 and x.shape[1] == num_features,
        "features x",
        got=f"shape {x.shape}",
        expected=f"shape (N, {num_features})",
        fix=f"Build the model with as many features as x has columns, without the intercept (here {num_features}).",
    )
    require(
        y.ndim == 1,
        "response y",
        got=f"shape {y.shape}",
        expected="shape (N,)",
        fix="Flatten the response to one value per row.",
    )
    return x, y


def check_support(y: np.ndarray, inside: np.ndarray, *, expected: str, fix: str) -> None:
    """Raise unless every response lies in the support; name the first that does not."""
    if not inside.all():
        first = int(np.argmin(inside))
        count = int((~inside).sum())
        raise InputError(
            "response y", got=f"{count} rows outside, first y[{first}] = {y[first]!r}", expected=expected, fix=fix
        )


def index_column(data: Any, name: str, count: int) -> np.ndarray:
    """The column ``name`` of a mapping, whole numbers from 0 to ``count - 1``; JAX would clip others in silence."""
    if not (isinstance(data, dict) and name in data):
        got = f"keys {sorted(map(str, data))}" if isinstance(data, dict) else type(data).__name__
        raise InputError(
            f"column {name}",
            got=got,
            expected=f'a mapping with "{name}": (N,) whole numbers',
            fix="Number the categories from 0, e.g. with pandas.factorize.",
        )
    column = np.asarray(data[name])
    require(
        column.ndim == 1,
        f"column {name}",
        got=f"shape {column.shape}",
        expected="shape (N,)",
        fix="Pass one number per row.",
    )
    inside = (column >= 0) & (column < count) & (column == np.floor(column))
    if not inside.all():
        first = int(np.argmin(inside))
        raise InputError(
            f"column {name}",
            got=f"{int((~inside).sum())} rows outside, first {name}[{first}] = {column[first]!r}",
            expected=f"whole numbers from 0 to {count - 1}",
            fix="Number the categories from 0 and build the model with as many as there are.",
        )
    return column
