"""NumPyro models on coresets against NumPyro's own NUTS on all rows.

For each model: the largest difference of a posterior mean in standard deviations of NUTS and in Monte Carlo standard
errors of the two runs together, the ratios of standard deviations, and the difference of the two log densities.

    coreset-mcmc bench numpyro --out docs/benchmarks
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import potential_energy

import coreset_mcmc as cm
from coreset_mcmc.posterior.problem import starting_positions
from coreset_mcmc_benchmarks.draws import Draws
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
from coreset_mcmc_benchmarks.interop.models.numpyro_gallery import MODELS, Case, cases

INTRODUCTION = """# NumPyro models on coresets against NumPyro's NUTS

Models from NumPyro's documentation, unchanged, with simulated data
(`benchmarks/coreset_mcmc_benchmarks/interop/models/numpyro_gallery.py`). NUTS has 2 chains on all rows, the coreset 4
with twice as many draws; [interop_numpyro.csv](interop_numpyro.csv) says how many. Largest shifts are over all
parameters of a model: among so many, up to three Monte Carlo errors are expected where the posteriors are the same.
Seconds are those of two busy cores, compilation included. Where there are few rows NUTS takes less time.

`coreset-mcmc bench numpyro --rows 3000 --coreset-size 300 --draws 500 --out docs/benchmarks`
"""


def nuts_draws(case: Case, draws: int) -> Draws:
    """NumPyro's own posterior of all rows, without what has a value for each row."""
    mcmc = MCMC(
        NUTS(case.model),
        num_warmup=draws,
        num_samples=draws,
        num_chains=2,
        progress_bar=False,
        chain_method="sequential",
    )
    mcmc.run(jax.random.key(0), **jax.tree.map(jnp.asarray, case.data), **case.static)
    num_rows = len(next(iter(case.data.values())))
    sampled = {name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()}
    return {name: values for name, values in sampled.items() if values.shape[2:3] != (num_rows,)}


def relative_difference(case: Case, model: cm.Model) -> float:
    """The largest one of log densities at random positions."""
    assert model.bind is not None
    bound, rows = model.bind(case.data), jax.tree.map(jnp.asarray, case.data)
    theirs = jax.jit(lambda at: -potential_energy(case.model, (), {**rows, **case.static}, at))
    ours = jax.jit(lambda at: bound.log_prior(at) + bound.log_likelihood(at, rows).sum())
    start = jax.tree.map(lambda leaf: leaf[0], starting_positions(bound, jax.random.key(0), 1))
    return largest_difference(ours, theirs, random_positions(start))


def measure(name: str, effort: Effort) -> Mapping[str, Any]:
    """One row of the table."""
    case = cases(effort.rows)[name]
    model, conversion = timed(lambda: cm.from_numpyro(case.model, static=case.static))
    with jax.enable_x64(True):
        difference = relative_difference(case, model)
        theirs, nuts = timed(lambda: nuts_draws(case, effort.draws))
    fit, fitting = timed(lambda: fitted(model, case.data, effort))
    ours = {name: fit.posterior[name].to_numpy() for name in theirs}
    return row_of(fit, (ours, theirs), difference, Seconds(conversion, fitting, nuts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare what is missing, and write the page."""
    models = {name: partial(measure, name) for name in MODELS}
    return compare_all("numpyro", __doc__, models, INTRODUCTION, ("divorce",), arguments)


if __name__ == "__main__":
    sys.exit(main())
