"""PyMC models with terms of some of the rows: survival models that index by a mask, and missing values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from coreset_mcmc_benchmarks.interop.catalogue.entry import Register
from coreset_mcmc_benchmarks.interop.catalogue.pymc_distributions import line, rate, real, spread

SOME_ROWS = Register("PyMC")
LIMIT = 1.5
Declare = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


def register(name: str, *, refused: str = "") -> Callable[[Declare], Declare]:
    """Register the model that ``declare(x, y, mask)`` makes: times up to a limit, and which of them have reached it."""

    def put(declare: Declare) -> Declare:
        def make(size: int) -> pm.Model:
            rng = np.random.default_rng(len(name))
            x = rng.normal(size=size)
            times = np.exp(0.5 * x) * rng.weibull(1.3, size=size)
            with pm.Model() as model:
                declare(x, np.minimum(times, LIMIT), times > LIMIT)
            return model

        SOME_ROWS.add(name, refused=refused)(make)
        return declare

    return put


def log_survival(y: Any, shape: Any, scale: Any) -> Any:
    """Of a Weibull distribution."""
    return -((y / scale) ** shape)


@register("survival, a mask in the model")
def _masked(x: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
    shape, scale = spread("shape"), rate(x)
    pm.Weibull("event", shape, scale[~censored], observed=y[~censored])
    pm.Potential("censored", log_survival(y[censored], shape, scale[censored]))


@register("survival, arrays split by NumPy")
def _split(x: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
    shape, slope = spread("shape"), pm.Normal("slope")
    pm.Weibull("event", shape, pt.exp(slope * x[~censored]), observed=y[~censored])
    pm.Potential("censored", log_survival(y[censored], shape, pt.exp(slope * x[censored])))


@register("missing responses")
def _missing(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    pm.Gamma("y", mu=rate(x), sigma=spread(), observed=np.ma.masked_array(y, mask=mask))


@register("one of two responses missing")
def _one_of_two(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    mean = line(x)
    pm.Normal("one", mean, spread(), observed=np.where(mask, np.nan, y))
    pm.Normal("two", mean, 1.0, observed=y)


@register("a missing covariate", refused="Their rows have responses")
def _covariate(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    seen = pm.Normal("x", pm.Normal("mean"), 1.0, observed=np.where(mask, np.nan, x))
    pm.Normal("y", pm.Normal("slope") * seen, spread(), observed=y)


@register("missing values in some columns", refused="missing values in some columns")
def _columns(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    both = np.column_stack([np.where(mask, np.nan, y), real(np.random.default_rng(0), len(y))])
    pm.Normal("y", line(x)[:, None], spread(), observed=both)
