"""Varying intercepts and slopes that are correlated by an LKJ prior, as the multilevel tutorials write them."""

from __future__ import annotations

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm

from coreset_mcmc_benchmarks.interop.catalogue.entry import Register
from coreset_mcmc_benchmarks.interop.models.numpyro_gallery import Case

NUMPYRO_GROUPS, PYMC_GROUPS = Register("NumPyro"), Register("PyMC")
NUM_GROUPS = 10
NAME = "slopes with an LKJ prior"


def rows_of(size: int) -> dict[str, np.ndarray]:
    """A covariate, groups whose intercepts and slopes go together, and a response."""
    rng = np.random.default_rng(8)
    x, group = rng.normal(size=size), rng.integers(NUM_GROUPS, size=size)
    effects = rng.multivariate_normal([1.0, -0.5], [[0.49, 0.2], [0.2, 0.16]], size=NUM_GROUPS)
    return {"x": x, "group": group, "y": rng.normal(effects[group, 0] + effects[group, 1] * x, 0.8)}


@NUMPYRO_GROUPS.add(NAME)
def in_numpyro(size: int) -> Case:
    """Effects are standard normals times a Cholesky factor."""

    def model(x: jax.Array, group: jax.Array, y: jax.Array | None = None, num_groups: int = NUM_GROUPS) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
        spread = numpyro.sample("spread", dist.HalfNormal(1.0).expand([2]).to_event(1))
        corr = numpyro.sample("corr", dist.LKJCholesky(2, 2.0))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
        with numpyro.plate("groups", num_groups):
            standard = numpyro.sample("standard", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        effects = mean + standard @ (spread[:, None] * corr).T
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(effects[group, 0] + effects[group, 1] * x, sigma), obs=y)

    return Case(model, rows_of(size), {"num_groups": NUM_GROUPS})


@PYMC_GROUPS.add(NAME)
def in_pymc(size: int) -> pm.Model:
    """The same with PyMC's prior of a covariance."""
    rows = rows_of(size)
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 2, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
        standard = pm.Normal("standard", 0, 1, shape=(NUM_GROUPS, 2))
        effects = mean + pm.math.dot(standard, chol.T)
        group = rows["group"]
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("y", effects[group, 0] + effects[group, 1] * rows["x"], sigma, observed=rows["y"])
    return model
