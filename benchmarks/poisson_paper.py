"""The paper's Poisson data: Coreset MCMC at its settings and the defaults of ``fit``, against NUTS on all rows.

Settings "paper": K = 2, univariate slice, all rows in each gradient, Adam with a constant rate, 50 000 updates, then
5 000 further steps of both chains. The rate is the one that the paper chose *with access to the true posterior* (an
oracle). Settings "defaults": ``coreset_mcmc.fit`` as it comes, which is told nothing. Each run adds a row to
``docs/benchmarks/poisson.csv``.

The data is found in the folder named by ``--data`` or CORESET_MCMC_DATA.

    python benchmarks/poisson_paper.py --data DIRECTORY [--settings paper defaults] [--coreset-sizes 500] [--seeds 1]
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
import warnings
from pathlib import Path
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import coreset_mcmc as cm
from coreset_mcmc.metrics import min_bulk_ess, two_moment_kl

PAPER_RATES = {10: 2.0, 20: 0.5, 50: 0.5, 100: 0.1, 200: 0.05, 500: 0.01}
"""Adam's rate for each coreset size, as the paper chose it."""

TABLE = Path(__file__).parent.parent / "docs" / "benchmarks" / "poisson.csv"


def load(folder: Path) -> dict[str, np.ndarray]:
    """The published file: eight standardised features, a constant column, the response."""
    table = np.loadtxt(folder / "poisson_reg.csv", delimiter=",")
    return {"x": table[:, :8], "y": table[:, 9]}


def reference(data: dict[str, np.ndarray], num_draws: int = 2_500) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of four NUTS chains on all rows, started at the mode; checked by their ESS."""
    model = cm.models.poisson_regression(8)
    arrays = jax.tree.map(jnp.asarray, data)

    def log_density(beta: jax.Array) -> jax.Array:
        position = {"beta": beta}
        return model.log_prior(position) + jnp.sum(model.log_likelihood(position, arrays))

    value_and_gradient = jax.jit(jax.value_and_grad(lambda beta: -log_density(beta)))
    found = minimize(
        lambda beta: jax.tree.map(np.asarray, value_and_gradient(beta)), np.r_[100.0, np.zeros(8)], jac=True
    )
    precision = -jax.hessian(log_density)(jnp.asarray(found.x))
    nuts = blackjax.nuts(log_density, step_size=0.5, inverse_mass_matrix=jnp.linalg.inv(precision))

    def chain(key: jax.Array) -> jax.Array:
        def step(state: Any, step_key: jax.Array) -> tuple[Any, jax.Array]:
            state, _ = nuts.step(step_key, state)
            return state, state.position

        _, draws = jax.lax.scan(step, nuts.init(jnp.asarray(found.x)), jax.random.split(key, num_draws + 200))
        return draws[200:]

    draws = np.asarray(jax.jit(lambda keys: jax.lax.map(chain, keys))(jax.random.split(jax.random.key(0), 4)))
    print(f"reference: smallest bulk ESS {min_bulk_ess(draws):,.0f} of {4 * num_draws:,}", flush=True)
    pooled = draws.reshape(-1, 9)
    return pooled.mean(axis=0), np.cov(pooled, rowvar=False)


def main() -> None:
    """Run, compare with the reference and add a row to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORESET_MCMC_DATA"), required=False)
    parser.add_argument("--settings", nargs="+", choices=["paper", "defaults"], default=["paper", "defaults"])
    parser.add_argument("--coreset-sizes", nargs="+", type=int, default=[500], choices=list(PAPER_RATES))
    parser.add_argument("--iterations", type=int, default=50_000, help="updates with the paper's settings")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load(Path(options.data))
    with jax.enable_x64(True):
        mean, covariance = reference(data)
    for name, coreset_size, seed in itertools.product(options.settings, options.coreset_sizes, options.seeds):
        rate = PAPER_RATES[coreset_size]
        label, settings = "defaults of fit()", {"chains": 4, "draws": 2_500}
        if name == "paper":
            paper = cm.CoresetMCMC(
                kernel=cm.kernels.UnivariateSlice(),
                optimizer=cm.optimizers.Adam(rate),
                num_chains=2,
                num_iterations=options.iterations,
            )
            label = f"paper, Adam {rate:g} (oracle-tuned)"
            settings = {"method": paper, "chains": 2, "draws": 5_000, "tune": 0}
        began = time.perf_counter()
        fit = cm.fit(
            cm.models.poisson_regression(8),
            data,
            coreset_size=coreset_size,
            random_seed=seed,
            progressbar=False,
            **settings,
        )
        draws = fit.posterior["posterior"]["beta"].to_numpy()
        row = {
            "settings": label,
            "coreset_size": coreset_size,
            "seed": seed,
            "updates": fit.training.num_steps,
            "two_moment_kl": round(two_moment_kl(draws, mean, covariance), 4),
            "estimated_kl": round(fit.kl_estimate, 4),
            "min_bulk_ess": round(min_bulk_ess(draws)),
            "training_seconds": round(fit.training.seconds, 1),
            "total_seconds": round(time.perf_counter() - began, 1),
            "evaluations": fit.pilot.num_evaluations + fit.training.num_evaluations + fit.sampling.num_evaluations,
        }
        print(row, flush=True)
        _append(row)


def _append(row: dict[str, Any]) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    is_new = not TABLE.exists()
    with TABLE.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
