"""Every fit of a page runs, with few rows and few draws: options above a cap, or left at their default, get the cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

import coreset_mcmc as cm
from coreset_mcmc.methods.contract import Method

DRAWS = {"draws": 60, "tune": 100, "chains": 2}
COMMAND = ["--draws", "60", "--tune", "100", "--seed", "1", "--coreset-size", "40", "--method", "uniform"]
"""Added to each ``coreset-mcmc fit`` that does not come with a configuration."""
WITHOUT_MORE = ["--no-trust", "--no-report"]
"""Added to all of them but the first of a page."""


def with_small_settings(monkeypatch: pytest.MonkeyPatch, methods: Iterator[Method]) -> None:
    """``cm.fit`` and ``pm.sample``, which Bambi calls too; NumPyro's recipe says its numbers itself.

    Args:
        monkeypatch: undoes it.
        methods: one for each fit that names none.
    """
    import pymc

    small_fit = _capped(cm.fit, {**DRAWS, "coreset_size": 40}, lambda: {"method": next(methods), "random_seed": 1})
    monkeypatch.setattr(cm, "fit", small_fit)
    small_sample = _capped(pymc.sample, {**DRAWS, "cores": 1}, lambda: {"random_seed": 1})
    monkeypatch.setattr(pymc, "sample", small_sample)


def _capped(
    function: Callable[..., Any], caps: dict[str, int], defaults: Callable[[], dict[str, Any]]
) -> Callable[..., Any]:
    @wraps(function)
    def small(*arguments: Any, **options: Any) -> Any:
        given = {name: value for name, value in options.items() if value is not None}
        fewer = {name: min(cap, given.get(name, cap)) for name, cap in caps.items()}
        return function(*arguments, **{"progressbar": False, **defaults(), **given, **fewer})

    return small
