"""Contestants of this package, of which nothing but ``import coreset_mcmc`` is loaded before they run.

So a run pays for all that a person pays for: the import, what the first fit loads besides, and compilation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.sizes import NUM_GROUPS, NUM_PLAYERS, Data

NUM_CHAINS = 4

MODELS: dict[str, Callable[[Any, Data], Any]] = {
    "linear": lambda models, data: models.linear_regression(data["x"].shape[1]),
    "logistic": lambda models, data: models.logistic_regression(data["x"].shape[1]),
    "poisson": lambda models, data: models.poisson_regression(data["x"].shape[1]),
    "sparse": lambda models, data: models.sparse_regression(data["x"].shape[1]),
    "mixture": lambda models, data: models.gaussian_mixture(2),
    "unidentified": lambda models, data: models.unidentified_regression(),
    "hierarchical": lambda models, data: models.hierarchical_logistic_regression(data["x"].shape[1], NUM_GROUPS),
    "bradley-terry": lambda models, data: models.bradley_terry(NUM_PLAYERS),
}


def model_of(name: str, data: Data) -> Any:
    """One of our models, by the name that its peer has, too."""
    import coreset_mcmc as cm  # noqa: PLC0415 - on the clock

    return MODELS[name](cm.models, data)


def run_ours(model: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The default."""
    start: dict[str, Any] = {}
    if model == "sparse":
        import coreset_mcmc as cm  # noqa: PLC0415

        start = {"initvals": cm.models.least_squares_start(data)}
    return fitted(model_of(model, data), data, seed, draws=effort.kept // NUM_CHAINS, chains=NUM_CHAINS, **start)


def run_laplace(model: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The Gaussian at the mode of all rows, corrected by Pareto-smoothed importance weights."""
    from coreset_mcmc.methods.full_data import Laplace  # noqa: PLC0415

    draws = effort.weighted_draws(len(next(iter(data.values())))) // NUM_CHAINS
    outcome = fitted(model_of(model, data), data, seed, method=Laplace(), chains=NUM_CHAINS, draws=draws, tune=0)
    return outcome._replace(coreset_size=None)


def fitted(model: Any, data: Data, seed: int, **arguments: Any) -> Outcome:
    """Draws and account of a fit."""
    import coreset_mcmc as cm  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit = cm.fit(model, data, random_seed=seed, progressbar=False, **arguments)
    draws = {str(name): values.to_numpy() for name, values in fit.posterior.data_vars.items()}
    kept = next(iter(draws.values())).shape[1]
    stages = (fit.pilot, fit.training, fit.sampling, fit.check)
    return Outcome(
        draws=draws,
        training_seconds=fit.pilot.seconds + fit.training.seconds,
        training_compile_seconds=fit.pilot.compile_seconds + fit.training.compile_seconds,
        sampling_seconds=fit.sampling.seconds * kept / max(fit.sampling.num_steps, 1),
        evaluations=sum(stage.num_evaluations for stage in stages),
        coreset_size=fit.coreset.size if fit.has_coreset else None,
        kl_estimate=fit.kl_estimate,
        warnings="; ".join(str(warning.message) for warning in caught),
    )
