"""The floor: the generalised linear model of statsmodels, and a Gaussian around its estimate. It has no priors."""

from __future__ import annotations

from typing import Any

import numpy as np

from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.sizes import Data


def run_statsmodels(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """Maximum likelihood by reweighted least squares; draws from the estimate and its covariance."""
    import statsmodels.api as sm  # noqa: PLC0415 - an optional extra

    with timed() as search:
        fitted = sm.GLM(data["y"], sm.add_constant(data["x"], has_constant="add"), family=family(name)).fit()
    rng = np.random.default_rng(seed)
    with timed() as sampling:
        draws = {"beta": rng.multivariate_normal(fitted.params, fitted.cov_params(), size=(1, effort.kept))}
        if name == "linear":
            error = np.sqrt(2.0 / fitted.df_resid)
            draws["log_variance"] = np.log(fitted.scale) + error * rng.normal(size=(1, effort.kept))
    return Outcome(
        draws=draws,
        training_seconds=search.seconds,
        training_compile_seconds=0.0,
        sampling_seconds=sampling.seconds,
        evaluations=float(fitted.fit_history["iteration"]) * len(data["y"]),
        note="a point estimate without priors, and a Gaussian around it; no draws of a posterior",
        compile_seconds=0.0,
    )


def family(name: str) -> Any:
    """Likelihood and link of a model; statsmodels has no softplus, so it is given one."""
    import statsmodels.api as sm  # noqa: PLC0415

    if name != "poisson":
        return {"linear": sm.families.Gaussian, "logistic": sm.families.Binomial}[name]()

    class Softplus(sm.families.links.Link):  # type: ignore[misc]
        """mean = log(1 + exp(predicted))."""

        def __call__(self, p: np.ndarray) -> Any:
            return np.log(np.expm1(p))

        def inverse(self, z: np.ndarray) -> Any:
            return np.logaddexp(0.0, z)

        def deriv(self, p: np.ndarray) -> Any:
            return -1.0 / np.expm1(-p)

        def inverse_deriv(self, z: np.ndarray) -> Any:
            return 1.0 / (1.0 + np.exp(-z))

    return sm.families.Poisson(link=Softplus(), check_link=False)
