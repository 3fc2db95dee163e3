"""NumPyro models on coresets against NumPyro's own NUTS on all rows.

    python benchmarks/interop_numpyro.py [--rows 5000] [--output docs/benchmarks/interop_numpyro.md]

For each model: the largest difference of a posterior mean in standard deviations of NUTS and in Monte Carlo standard
errors of the two runs together, the ratios of standard deviations, and the difference of the two log densities.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import arviz_base
import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "interop"))

from numpyro.infer import MCMC, NUTS  # noqa: E402
from numpyro.infer.util import potential_energy  # noqa: E402

import coreset_mcmc as cm  # noqa: E402
from tests.helpers.numpyro_models import Case, cases  # noqa: E402

HEADER = (
    "| model | rows | M | parameters | totals differ by (relative) | estimated KL | largest shift (sd) | "
    "(MC errors) | sd ratio | seconds: fit | NUTS |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def nuts(case: Case, draws: int) -> Any:
    """NumPyro's own posterior of all rows."""
    mcmc = MCMC(
        NUTS(case.model),
        num_warmup=draws,
        num_samples=draws,
        num_chains=2,
        progress_bar=False,
        chain_method="sequential",
    )
    mcmc.run(jax.random.key(0), **jax.tree.map(jnp.asarray, case.data), **case.static)
    return arviz_base.from_dict(
        {
            "posterior": {
                name: np.asarray(value)
                for name, value in mcmc.get_samples(group_by_chain=True).items()
                if value.shape[2:3] != (len(next(iter(case.data.values()))),)
            }
        }
    )


def totals(case: Case, model: cm.Model) -> float:
    """The largest relative difference of log densities at random positions."""
    bound, rng, worst = model.bind(case.data), np.random.default_rng(0), 0.0
    rows = jax.tree.map(jnp.asarray, case.data)
    theirs = jax.jit(lambda at: -potential_energy(case.model, (), {**rows, **case.static}, at))
    ours = jax.jit(lambda at: bound.log_prior(at) + bound.log_likelihood(at, rows).sum())
    for _ in range(5):
        position = jax.tree.map(
            lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), bound.initial_position(jax.random.key(0))
        )
        worst = float(np.maximum(worst, abs(float(ours(position) / theirs(position) - 1))))  # NaN stays NaN
    return worst


def compare(name: str, case: Case, coreset_size: int, draws: int) -> str:
    """One line of the table."""
    model = cm.from_numpyro(case.model, static=case.static)
    with jax.enable_x64(True):
        difference = totals(case, model)
        began = time.perf_counter()
        reference = nuts(case, draws)
        nuts_seconds = time.perf_counter() - began
    began = time.perf_counter()
    fit = cm.fit(
        model, case.data, coreset_size=coreset_size, draws=2 * draws, tune=draws, random_seed=0, progressbar=False
    )
    fit_seconds = time.perf_counter() - began
    ours, theirs = (
        arviz_stats.summary(tree, var_names=list(reference["posterior"].data_vars), round_to="none")
        for tree in (fit.tree, reference)
    )
    ours.index = theirs.index
    shift = (ours["mean"] - theirs["mean"]).abs()
    errors = np.sqrt(ours["mcse_mean"].astype(float) ** 2 + theirs["mcse_mean"].astype(float) ** 2)
    ratios = ours["sd"] / theirs["sd"]
    return (
        f"| {name} | {fit.coreset.num_rows} | {fit.coreset.size} | {len(ours)} | {difference:.1e} | "
        f"{fit.kl_estimate:.2g} | {(shift / theirs['sd']).max():.3f} | {(shift / errors).max():.1f} | "
        f"{ratios.min():.2f} to {ratios.max():.2f} | {fit_seconds:.0f} | {nuts_seconds:.0f} |"
    )


def main() -> None:
    """Run all models and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--coreset-size", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--models", nargs="*", default=None)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "interop_numpyro.md")
    options = parser.parse_args()
    lines = []
    for name, case in cases(options.rows).items():
        if options.models is None or name in options.models:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                lines.append(compare(name, case, options.coreset_size, options.draws))
            notes = sorted({str(item.message).split(":")[0] for item in caught if "coreset_mcmc" in item.filename})
            print(lines[-1], *notes, sep="\n", flush=True)
            text = "\n".join(
                [
                    "# NumPyro models on coresets against NumPyro's NUTS",
                    "",
                    "Models from NumPyro's documentation, unchanged (`tests/interop/numpyro_models.py`), with "
                    f"simulated data. NUTS: 2 chains of {options.draws} draws on all rows; coreset: 4 chains of "
                    f"{2 * options.draws} draws. Largest shifts are over all parameters of a model: among so many, up "
                    "to three Monte Carlo errors are expected where the posteriors are the same. Seconds are those of "
                    "two busy cores, compilation included. Where there are few rows NUTS takes less time.",
                    "",
                    HEADER,
                    *lines,
                    "",
                    f"`python benchmarks/interop_numpyro.py --rows {options.rows} "
                    f"--coreset-size {options.coreset_size} --draws {options.draws}`",
                    "",
                ]
            )
            options.output.write_text(text)


if __name__ == "__main__":
    main()
