"""Each library's own sampler draws the same before and after a fit of ours in one process, in the same precision."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.full

START = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, jax, jax.numpy as jnp
import coreset_mcmc as cm
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 3))
y = x @ [1.0, 2.0, 3.0] + rng.normal(size=60)
scale, shift = np.array([1.0, 2.0, 3.0]), np.zeros(3)  # double precision; a user of JAX thinks nothing of it
settings = dict(coreset_size=20, draws=10, tune=10, chains=2, progressbar=False)
"""
NUMPYRO = """
import numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

def model(x, y=None, scale=None):
    b = numpyro.sample("b", dist.Normal(shift, scale).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ b, 1.0), obs=y)

def own():
    chains = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    chains.run(jax.random.key(0), x=jnp.asarray(x), y=jnp.asarray(y), scale=scale)
    return chains.get_samples()["b"]

def ours():
    cm.fit(cm.from_numpyro(model, static={"scale": scale}), {"x": x, "y": y}, **settings)
"""
BLACKJAX = """
import blackjax

def log_likelihood(position, batch):
    return -0.5 * (batch["y"] - batch["x"] @ (position * scale / scale)) ** 2

def log_prior(position):
    return -0.5 * jnp.sum((position / scale) ** 2)

def own():
    rows = {"x": jnp.asarray(x), "y": jnp.asarray(y)}
    nuts = blackjax.nuts(lambda at: log_prior(at) + log_likelihood(at, rows).sum(), 0.1, jnp.ones(3))
    state = nuts.init(jnp.zeros(3))
    for key in jax.random.split(jax.random.key(0), 3):
        state, _ = jax.jit(nuts.step)(key, state)
    return state.position

def ours():
    kernel = cm.from_blackjax(blackjax.nuts, step_size=0.1, inverse_mass_matrix=np.ones(3))
    cm.fit(cm.Model(log_prior, log_likelihood, np.zeros(3)), {"x": x, "y": y}, kernel=kernel, **settings)
"""
PYMC = """
import pymc as pm
with pm.Model() as model:
    b = pm.Normal("b", shift, scale, shape=3)
    pm.Censored("y", pm.Normal.dist(pm.math.dot(x, b), 1.0), lower=None, upper=9.0, observed=np.minimum(y, 9.0))

def own():
    with model:
        drawn = pm.sample(20, tune=20, chains=1, cores=1, random_seed=1, progressbar=False, quiet=True)
    return drawn["posterior"]["b"]

def ours():
    cm.fit(cm.from_pymc(model), **settings)
"""
BAMBI = """
import bambi as bmb, pandas as pd
model = bmb.Model("y ~ a + b", pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}))

def own():
    drawn = model.fit(draws=20, tune=20, chains=1, cores=1, random_seed=1, progressbar=False)
    return drawn["posterior"]["Intercept"]

def ours():
    cm.fit(cm.from_bambi(model), **settings)
"""
COMPARE = """
before, was = np.asarray(own()), jax.config.jax_enable_x64
ours()
after = np.asarray(own())
assert was == jax.config.jax_enable_x64
assert before.dtype == after.dtype and np.array_equal(before, after), (before[-1], after[-1])
"""
JAX_BACKEND_OF_PYMC = """
import pytensor, pytensor.tensor as pt, sys
cm.from_pymc(model)
assert not jax.config.jax_enable_x64 and "pytensor.link.jax.dispatch" not in sys.modules
z = pt.vector("z")
assert np.asarray(pytensor.function([z], pt.exp(z), mode="JAX")(np.ones(3))).dtype == np.float64
assert jax.config.jax_enable_x64, "PyTensor switches to double precision itself when it is first used"
try:
    pytensor.function([z], pt.erfcx(z), mode="JAX")
    raise AssertionError("our conversions were registered with PyTensor")
except NotImplementedError:
    pass
cm.from_pymc(model)  # with the backend that the user has imported
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    "library", ["numpyro", "pymc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("blackjax", "bambi"))]
)
def test_own_samplers_draw_the_same_before_and_after(library):
    pytest.importorskip(library)
    run(START + globals()[library.upper()] + COMPARE)


def test_pymcs_own_jax_backend_is_as_if_we_had_not_used_it():
    pytest.importorskip("pymc")
    run(START + PYMC + JAX_BACKEND_OF_PYMC)


def test_arrays_of_numpy_are_constants_of_the_precision_in_force():
    """JAX alone remembers the first precision in which it met an array."""
    run(
        START
        + """
from coreset_mcmc.core.numpy_constants import keep_precisions_apart
assert keep_precisions_apart()
product = jax.jit(lambda a: a * scale)
with jax.enable_x64(True):
    assert product(jnp.ones(3)).dtype == jnp.float64
single = jax.jit(lambda a: jnp.sum(jnp.sqrt(2.0) * scale * a))
assert single(jnp.ones(3)).dtype == jnp.float32
"""
    )
