"""Peers of other libraries have the posterior of NumPyro's peers, which have ours."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from coreset_mcmc_benchmarks.speed.contestants import CONTESTANTS, OTHER_LIBRARIES
from coreset_mcmc_benchmarks.speed.effort import QUICK
from coreset_mcmc_benchmarks.speed.measure import runner
from coreset_mcmc_benchmarks.speed.peers import PEERS
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS
from coreset_mcmc_benchmarks.speed.pymc_models import PYMC_MODELS
from coreset_mcmc_benchmarks.speed.sizes import dimension


@pytest.fixture
def make_data(rng):
    def make(name, size=300):
        x = rng.normal(size=(size, 3))
        predicted = x @ [0.5, -0.3, 0.2]
        y = {
            "linear": lambda: predicted + rng.normal(size=size),
            "logistic": lambda: (rng.random(size) < 1 / (1 + np.exp(-predicted))).astype(float),
            "poisson": lambda: rng.poisson(np.logaddexp(0.0, predicted)).astype(float),
        }[name]()
        return {"x": x, "y": y}

    return make


def random_position(name, rng):
    position = {"beta": rng.normal(size=4)}
    return position | ({"log_variance": np.asarray(rng.normal())} if name == "linear" else {})


@pytest.mark.parametrize("name", list(PYMC_MODELS))
def test_pymc_models_have_the_posterior_of_their_peers(name, rng, make_data):
    """At random points the log-densities differ by one constant."""
    import pymc as pm
    import pytensor

    data = make_data(name)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""), jax.enable_x64(True):
        model = PYMC_MODELS[name](data)
        assert isinstance(model, pm.Model)
        density = model.compile_logp()
        arrays = {column: jnp.asarray(values) for column, values in data.items()}
        differences = []
        for _ in range(5):
            position = random_position(name, rng)
            theirs, _ = log_density(PEERS[name], (arrays,), {}, position)
            differences.append(float(density(position)) - float(theirs))
    assert np.ptp(differences) < 1e-8 * max(1.0, np.max(np.abs(differences)))


@pytest.mark.parametrize("name", list(PYMC_MODELS))
def test_the_point_estimate_has_no_slope_in_the_likelihood(name, make_data):
    """At the mean of its draws the gradient of our log-likelihood is nothing beside its own standard errors."""
    data = make_data(name, 2_000)
    outcome = runner(CONTESTANTS["statsmodels"].run)(name, data, QUICK, 1)
    model = next(problem for problem in PROBLEMS.values() if problem.kind == name).model(data)
    with jax.enable_x64(True):
        arrays = {column: jnp.asarray(values) for column, values in data.items()}
        mean = {key: jnp.asarray(values.mean(axis=(0, 1))) for key, values in outcome.draws.items()}
        slope = jax.grad(lambda at: jnp.sum(model.log_likelihood(at, arrays)))(mean)["beta"]
    spread = np.cov(outcome.draws["beta"][0], rowvar=False)
    assert np.sqrt(slope @ spread @ slope) < 6 * np.sqrt(4 / QUICK.kept)
    assert outcome.draws["beta"].shape == (1, QUICK.kept, 4)


def test_all_problems_of_other_libraries_have_a_pymc_model():
    assert {PROBLEMS[name].kind for name in OTHER_LIBRARIES} <= set(PYMC_MODELS)


@pytest.mark.parametrize("name", list(CONTESTANTS))
def test_contestants_name_functions_and_libraries_that_exist(name):
    assert callable(runner(CONTESTANTS[name].run))
    for library in CONTESTANTS[name].libraries:
        assert importlib.util.find_spec(library) is not None


@pytest.mark.parametrize("name", ["linear", "unidentified", "hierarchical", "mixture", "bradley-terry"])
def test_dimensions_are_those_of_the_models(name):
    problem = PROBLEMS[name]
    data = problem.load(None, 200)
    start = problem.model(data).initial_position
    start = start(jax.random.key(0)) if callable(start) else start
    assert dimension(problem.kind, data) == sum(np.size(leaf) for leaf in jax.tree.leaves(start))
