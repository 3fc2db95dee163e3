"""The arguments of a NumPyro model: which of them the data give, which the user, and which are missing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coreset_mcmc.core.errors import require


def innermost(model: Any) -> Any:
    """The function inside handlers and partial applications."""
    while (inner := getattr(model, "fn", None) or getattr(model, "func", None)) is not None:
        model = inner
    return model


def arguments_of(function: Callable[..., Any], rows: Mapping[str, Any], static: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the arguments; those of the data must be among them, and none may be missing."""
    parameters = dict(inspect.signature(innermost(function)).parameters)
    for name in _given_by_place(function, list(parameters)):
        del parameters[name]
    takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
    named = {
        name: item
        for name, item in parameters.items()
        if item.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    given = {*rows, *static}
    unknown = sorted(str(name) for name in given - set(named))
    require(
        takes_any or not unknown,
        "data of a NumPyro model",
        got=f"{unknown}",
        expected=f"names of arguments of the model ({', '.join(named) or 'it has none'})",
        fix="Rename those keys or leave them out; a scan takes columns={'x': ['x1', 'x2'], 'y': 'y'}. Arguments that "
        "are not rows go to from_numpyro(..., static=...).",
    )
    both = sorted(set(rows) & set(static))
    require(
        not both, "static", got=f"{both}, also in the data", expected="one place", fix="Leave it out of one of them."
    )
    keywords = _given_by_name(function)
    missing = sorted(
        name
        for name, item in named.items()
        if item.default is inspect.Parameter.empty and name not in {*given, *keywords}
    )
    require(
        not missing,
        "data of a NumPyro model",
        got=f"nothing for the arguments {missing}",
        expected="a value for every argument without a default",
        fix="Add arrays of rows to the data, other values to from_numpyro(..., static=...), or None if that is meant.",
    )
    return tuple(name for name in named if name in given)


def _layers(function: Any) -> list[partial[Any]]:
    """The partial applications around a model, the outermost first."""
    found = []
    while function is not None:
        if isinstance(function, partial):
            found.append(function)
        function = getattr(function, "fn", None) or getattr(function, "func", None)
    return found


def _given_by_place(function: Any, names: list[str]) -> list[str]:
    """Arguments that partial applications have given values without their names."""
    return names[: sum(len(layer.args) for layer in _layers(function))]


def _given_by_name(function: Any) -> set[str]:
    return {name for layer in _layers(function) for name in layer.keywords}
