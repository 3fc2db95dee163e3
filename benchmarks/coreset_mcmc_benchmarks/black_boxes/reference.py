"""The posterior of all rows without our code: a search by SciPy, then importance sampling with a t distribution.

Its effective number of draws says how far it can be trusted; the Monte Carlo errors follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from coreset_mcmc.core.trees import coordinate_names, flat_positions, positions_of
from coreset_mcmc_benchmarks.black_boxes.problems import Problem

DEGREES = 5
STEP = 1e-4
SEARCH: Any = {"maxiter": 4_000, "maxfev": 4_000, "xatol": 1e-5, "fatol": 1e-4, "adaptive": True}
CLIMB: Any = {"gtol": 1e-3}


class Reference(NamedTuple):
    """Means and standard deviations of all coordinates, and the Monte Carlo error of the means."""

    names: tuple[str, ...]
    means: np.ndarray
    deviations: np.ndarray
    errors: np.ndarray
    effective: float


def reference(problem: Problem, draws: int) -> Reference:
    """Exact where that is known."""
    start = {name: np.asarray(value, float) for name, value in problem.start.items()}
    names = coordinate_names(start)
    if problem.exact is not None:
        known = problem.exact()
        means, deviations = np.array([known[name] for name in names]).T
        return Reference(names, means, deviations, np.zeros(len(names)), np.inf)
    log_likelihood = problem.fast or problem.log_likelihood

    def height(flat: np.ndarray) -> float:
        position = {name: value[0] for name, value in positions_of(start, np.asarray(flat)[None]).items()}
        with np.errstate(all="ignore"):
            total = float(problem.log_prior(position) + np.sum(log_likelihood(position, problem.data)))
        return total if np.isfinite(total) else -1e300

    first = flat_positions({name: value[None] for name, value in start.items()})[0]
    minimize: Any = optimize.minimize
    found = minimize(lambda flat: -height(flat), first, method="Nelder-Mead", options=SEARCH)
    found = minimize(lambda flat: -height(flat), found.x, method="BFGS", options=CLIMB)
    factor = _factor(height, found.x)
    proposal = stats.multivariate_t(found.x, factor @ factor.T, df=DEGREES, seed=0)
    flat = np.atleast_2d(proposal.rvs(draws))
    logs = np.array([height(one) for one in flat]) - proposal.logpdf(flat)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = weights @ flat
    deviations = np.sqrt(weights @ (flat - means) ** 2)
    errors = np.sqrt(weights**2 @ (flat - means) ** 2)
    return Reference(names, means, deviations, errors, float(1.0 / np.sum(weights**2)))


def _factor(height: Callable[[np.ndarray], float], mode: np.ndarray) -> np.ndarray:
    """A factor of the covariance of the Gaussian with the curvature at the mode."""
    steps = STEP * np.maximum(np.abs(mode), 1.0)
    unit = np.diag(steps)

    def second(one: int, other: int) -> float:
        corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        values = [height(mode + up * unit[one] + right * unit[other]) for up, right in corners]
        return float((values[0] - values[1] - values[2] + values[3]) / (4.0 * steps[one] * steps[other]))

    count = len(mode)
    curvature = -np.array([[second(one, other) for other in range(count)] for one in range(count)])
    result: np.ndarray = np.linalg.cholesky(np.linalg.inv(0.5 * (curvature + curvature.T)))
    return result
