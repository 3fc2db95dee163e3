"""One fit of a method on a case, and the row it leaves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import jax

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import jensen_shannon, min_bulk_ess, two_moment_kl
from coreset_mcmc.methods.registry import METHODS
from coreset_mcmc_benchmarks.draws import continuous, draws_of
from coreset_mcmc_benchmarks.methods.cases import CHAINS, Case, Reference


@dataclass(frozen=True)
class Effort:
    """Rows of a coreset, and draws of each chain."""

    coreset_size: int = 200
    draws: int = 1_000
    tune: int = 500


FULL, QUICK = Effort(), Effort(50, 100, 50)


def default_settings(name: str) -> Any:
    """What stands for a method unless the paper gives settings for the model."""
    if name == "coreset-mcmc":
        return cm.CoresetMCMC(num_chains=4, num_iterations=100_000, epochs=cm.DoublingEpochs())
    if name == "sparse-vi":
        return cm.SparseVI(num_updates=20, subsample_size=1_000)
    if name == "sparse-hamiltonian-flow":
        return cm.SparseHamiltonianFlow(num_iterations=20_000)
    return METHODS[name]()


def measure(name: str, case: Case, reference: Reference, seed: int, effort: Effort) -> dict[str, Any]:
    """One fit and its row."""
    size = jax.tree.leaves(case.data)[0].shape[0]
    row: dict[str, Any] = {"rows": size, "coreset_size": effort.coreset_size}
    method = case.overrides[name]() if name in case.overrides else default_settings(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = cm.fit(
                case.model, case.data, coreset_size=effort.coreset_size, draws=effort.draws, tune=effort.tune,
                chains=CHAINS, random_seed=seed, method=method, initvals=case.initvals, progressbar=False,
            )  # fmt: skip
    except (cm.InputError, cm.RunError) as error:
        return row | {"failure": str(error).replace("\n", " ")[:160]}
    draws = continuous(case.fold(draws_of(fit)))
    ess = min_bulk_ess(draws)
    num_evaluations = sum(cost.num_evaluations for cost in (fit.pilot, fit.training, fit.sampling))
    row |= {
        "kl": two_moment_kl(draws, reference.mean, reference.covariance),
        "training_seconds": fit.pilot.seconds + fit.training.seconds,
        "sampling_seconds": fit.sampling.seconds,
        "min_ess": ess,
        "ess_per_second": ess / fit.sampling.seconds,
        "evaluations_per_effective_draw": num_evaluations / ess,
    }
    if reference.patterns is not None:
        gamma = fit.posterior["gamma"].to_numpy()
        row["js"] = jensen_shannon(gamma.reshape(-1, gamma.shape[-1]), reference.patterns)
    return row
