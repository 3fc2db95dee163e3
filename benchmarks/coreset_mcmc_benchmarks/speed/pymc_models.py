"""Four of the posteriors as PyMC models (extra ``pymc``); every variable is unconstrained, so log-densities agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, np.ndarray]


def _predicted(data: Data, prior: Callable[..., Any]) -> Any:
    """beta_0 + x'beta."""
    import pymc as pm  # noqa: PLC0415 - an optional extra

    beta = prior("beta", shape=data["x"].shape[1] + 1)
    return beta[0] + pm.math.dot(pm.Data("x", data["x"]), beta[1:])


def _standard_normal(name: str, **options: Any) -> Any:
    import pymc as pm  # noqa: PLC0415

    return pm.Normal(name, 0.0, 1.0, **options)


def _cauchy(name: str, **options: Any) -> Any:
    import pymc as pm  # noqa: PLC0415

    return pm.Cauchy(name, 0.0, 1.0, **options)


def linear(data: Data) -> Any:
    """Departure delays: coefficients and log sigma^2 standard normal."""
    import pymc as pm  # noqa: PLC0415

    with pm.Model() as model:
        log_variance = _standard_normal("log_variance")
        mean = _predicted(data, _standard_normal)
        pm.Normal("y", mean, pm.math.exp(0.5 * log_variance), observed=pm.Data("observed", data["y"]))
    return model


def logistic(data: Data) -> Any:
    """Cauchy(0, 1) coefficients."""
    import pymc as pm  # noqa: PLC0415

    with pm.Model() as model:
        logits = _predicted(data, _cauchy)
        pm.Bernoulli("y", logit_p=logits, observed=pm.Data("observed", data["y"].astype(np.int64)))
    return model


def poisson(data: Data) -> Any:
    """Standard normal coefficients, softplus rate."""
    import pymc as pm  # noqa: PLC0415

    with pm.Model() as model:
        rate = pm.math.log1pexp(_predicted(data, _standard_normal))
        pm.Poisson("y", rate, observed=pm.Data("observed", data["y"].astype(np.int64)))
    return model


PYMC_MODELS: dict[str, Callable[[Data], Any]] = {"linear": linear, "logistic": logistic, "poisson": poisson}
