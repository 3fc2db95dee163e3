"""PyMC and Bambi models on coresets against their own NUTS on all rows.

For each model: the largest relative difference of the two log densities at random positions, the largest difference of
a posterior mean in standard deviations of NUTS and in Monte Carlo standard errors of the two runs together, and the
ratios of standard deviations.

    coreset-mcmc bench pymc --out docs/benchmarks
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import draws_of
from coreset_mcmc_benchmarks.interop.command import compare_all
from coreset_mcmc_benchmarks.interop.comparison import (
    Effort,
    Seconds,
    fitted,
    largest_difference,
    random_positions,
    row_of,
    timed,
)
from coreset_mcmc_benchmarks.interop.models import bambi_gallery, pymc_gallery

INTRODUCTION = """# PyMC and Bambi models on coresets against their own NUTS

Models from the two galleries, unchanged, with simulated data
(`benchmarks/coreset_mcmc_benchmarks/interop/models`). NUTS has 2 chains on all rows, the coreset 4 with twice as many
draws; [interop_pymc.csv](interop_pymc.csv) says how many. Largest shifts are over all parameters of a model: among so
many, up to three Monte Carlo errors are expected where the posteriors are the same. Seconds are those of two busy
cores, compilation included; with so few rows NUTS is faster.

With hundreds of rows in each group Bambi's default, the non-centred parametrisation, mixes badly: chains disagree (a
warning says so, R-hat above 1.1) although the coreset is exact. `noncentered=False` is the cure.

`coreset-mcmc bench pymc --rows 3000 --coreset-size 300 --draws 500 --out docs/benchmarks`
"""
SAMPLING = {"chains": 2, "cores": 1, "random_seed": 0, "progressbar": False}
SOURCES: dict[str, Callable[[int], Any]] = {
    **{f"PyMC {name}": make for name, make in pymc_gallery.MODELS.items()},
    **{f"Bambi {name}": make for name, make in bambi_gallery.MODELS.items()},
    "Bambi sleepstudy, centred": partial(bambi_gallery.sleepstudy, noncentered=False),
}
"""All models of the two galleries, from the number of rows."""


def relative_difference(source: pm.Model, model: cm.Model) -> float:
    """The largest one of log densities at random positions."""
    theirs = source.compile_logp(mode="FAST_COMPILE")

    def ours(position: Any) -> jax.Array:
        return model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data))

    return largest_difference(
        ours, lambda at: theirs(jax.tree.map(np.asarray, at)), random_positions(model.initial_position)
    )


def nuts_draws(source: Any, draws: int) -> Any:
    """The library's own posterior of all rows."""
    if isinstance(source, pm.Model):
        with source:
            return pm.sample(draws, tune=draws, **SAMPLING)["posterior"]
    return source.fit(draws=draws, tune=draws, **SAMPLING)["posterior"]


def measure(name: str, effort: Effort) -> Mapping[str, Any]:
    """One row of the table."""
    source = SOURCES[name](effort.rows)
    is_pymc = isinstance(source, pm.Model)
    model, conversion = timed(lambda: cm.from_pymc(source) if is_pymc else cm.from_bambi(source))
    with jax.enable_x64(True):
        difference = relative_difference(source if is_pymc else source.backend.model, model)
    posterior, nuts = timed(lambda: nuts_draws(source, effort.draws))
    fit, fitting = timed(lambda: fitted(model, None, effort))
    ours = draws_of(fit)
    theirs = {key: np.asarray(posterior[key]) for key in ours}
    return row_of(fit, (ours, theirs), difference, Seconds(conversion, fitting, nuts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare what is missing, and write the page."""
    models = {name: partial(measure, name) for name in SOURCES}
    return compare_all("pymc", __doc__, models, INTRODUCTION, ("PyMC linear",), arguments)


if __name__ == "__main__":
    sys.exit(main())
