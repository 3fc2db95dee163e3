"""PyMC models, unchanged: which terms are prior and which are rows, and what cannot be a coreset."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.models.independence import random_positions
from tests.helpers.pymc_totals import assert_totals_agree, positions_of, total

pm = pytest.importorskip("pymc", reason="needs PyMC: pip install coreset-mcmc[pymc]")
import pytensor.tensor as pt  # noqa: E402

from coreset_mcmc_benchmarks.interop.models.pymc_gallery import COUNTIES, MODELS, linear  # noqa: E402

SIZE = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=SIZE)
Y = RNG.normal(1 + X, 0.5)


@cache
def source(name: str):
    return MODELS[name](SIZE)


@cache
def converted(name: str) -> cm.Model:
    return cm.from_pymc(source(name))


def pymcs_total(model, position) -> float:
    """PyMC's own log-density of the unconstrained model, by its reference interpreter."""
    function = model.compile_logp(mode="FAST_COMPILE")
    return float(function({key: np.asarray(value) for key, value in position.items()}))


@pytest.mark.full
@pytest.mark.parametrize("name", list(MODELS))
def test_totals_are_those_of_pymc(name):
    assert_totals_agree(source(name), converted(name))


@pytest.mark.full
@pytest.mark.parametrize("name", ["radon", "mixture"])
def test_rows_can_be_batched_differentiated_and_vectorised(name):
    model = converted(name)
    places = np.array([5, 2, 40, 7])
    position = positions_of(model)[0]
    few = {key: value[places] for key, value in model.data.items()}
    whole = model.log_likelihood(position, model.data)
    np.testing.assert_allclose(model.log_likelihood(position, few), whole[places], rtol=1e-12)
    many = random_positions(model.initial_position, 3)
    gradients = jax.vmap(jax.grad(lambda at: jnp.sum(model.log_likelihood(at, few))))(many)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradients))
    assert any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(gradients))


def test_prior_and_likelihood_are_split_at_the_right_place():
    """The prior alone is PyMC's log-density of the free variables with their Jacobians."""
    model, ours = source("radon"), converted("radon")
    function = model.compile_logp(vars=model.free_RVs, mode="FAST_COMPILE")
    for position in positions_of(ours):
        expected = function({key: np.asarray(value) for key, value in position.items()})
        np.testing.assert_allclose(ours.log_prior(position), expected, rtol=1e-8)


def test_names_dims_and_deterministics_of_the_user():
    logistic, radon = converted("logistic"), converted("radon")
    assert set(logistic.data) == {"x", "outcome"}
    shown = logistic.constrain(logistic.initial_position)
    assert set(shown) == {"b0", "b", "odds"}, "p has a value for each row and is left out"
    assert logistic.dims == {"b": ("feature",), "odds": ("feature",)}
    assert list(radon.coords["county"]) == COUNTIES
    assert set(radon.constrain(radon.initial_position)) == {"mu_a", "sigma_a", "alpha", "beta", "sigma_y"}
    assert set(radon.observed(radon.data)) == {"y"}


def test_initial_values_are_given_on_the_scale_of_the_user():
    model = converted("radon")
    position = model.unconstrain({"sigma_a": 2.5, "beta": -1.0}, model.initial_position)
    values = model.constrain(position)
    np.testing.assert_allclose(values["sigma_a"], 2.5)
    np.testing.assert_allclose(values["beta"], -1.0)
    with pytest.raises(cm.InputError, match="names among"):
        model.unconstrain({"tau": 1.0}, model.initial_position)


def mean_of_new_responses(ours: cm.Model, position, count: int = 4_000):
    """Of the first five rows, and its standard error."""
    few = {key: value[:5] for key, value in ours.data.items()}
    keys = jax.random.split(jax.random.key(1), count)
    (draws,) = jax.jit(jax.vmap(lambda key: ours.predictive(key, position, few)))(keys).values()
    assert draws.shape == (count, 5)
    return np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(count)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["radon", "mixture", "logistic"])
def test_new_responses_follow_the_model(name):
    """Within five standard errors of the known mean, five rows: false alarms in fewer than 1 of 10^5 runs."""
    ours = converted(name)
    position = positions_of(ours)[0]
    values = ours.constrain(position)
    mean, error = mean_of_new_responses(ours, position)
    if name == "mixture":
        expected = np.full(5, np.sum(values["w"] * values["mu"]))
    elif name == "logistic":
        expected = 1 / (1 + np.exp(-(values["b0"] + ours.data["x"][:5] @ values["b"])))
    else:
        columns = {value.dtype.kind: value[:5] for key, value in ours.data.items() if key != "y"}
        expected = values["alpha"][columns["i"]] + values["beta"] * columns["f"]
    assert np.all(np.abs(mean - expected) < 5 * error)


@pytest.mark.full
def test_students_t_becomes_normal_with_many_degrees_of_freedom():
    """PyMC's own log-density is off by a thousand nats from 10^13 degrees of freedom on, which slice samplers find."""
    model = converted("robust")
    start = {**model.initial_position, "intercept": np.asarray(1.0), "slope": np.asarray(2.0)}
    residual = model.data["y"] - 1 - 2 * model.data["x"]
    sigma = np.exp(start["sigma_log__"])
    normal = np.sum(-0.5 * (residual / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi))
    for log_freedom in (20.0, 40.0, 200.0):
        position = {**start, "nu_log__": np.asarray(log_freedom)}
        np.testing.assert_allclose(np.sum(model.log_likelihood(position, model.data)), normal, rtol=1e-6)
    lost = pymcs_total(source("robust"), {**start, "nu_log__": np.asarray(40.0)})
    assert abs(lost - float(model.log_prior({**start, "nu_log__": np.asarray(40.0)})) - normal) > 1


@pytest.mark.full
def test_several_observed_variables_and_rows_of_vectors():
    group = RNG.integers(3, size=SIZE)
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1, shape=3)
        scale = pm.HalfNormal("scale", 1)
        pm.MvNormal("pair", mu=pt.stack([a[0], a[1]]), cov=np.eye(2), observed=np.column_stack([X, Y]))
        pm.Poisson("count", pm.math.exp(a[group]), observed=RNG.poisson(2, size=SIZE))
        pm.Normal("triple", a, scale, observed=np.column_stack([X, Y, X - Y]))
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    assert ours.log_likelihood(ours.initial_position, ours.data).shape == (SIZE,)


def test_sizes_that_repeat_the_number_of_rows_follow_the_batch():
    with pm.Model(coords={"row": range(SIZE)}) as model:
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("shaped", pt.zeros(SIZE), sigma, observed=Y, shape=SIZE)
        pm.StudentT("named", nu=4, mu=0, sigma=sigma, observed=X, dims="row")
    assert_totals_agree(model, cm.from_pymc(model))


def test_data_may_run_along_another_axis():
    features = RNG.normal(size=(SIZE, 2))
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal("y", pm.math.dot(b, features.T), 1, observed=Y)
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    assert {value.shape for value in ours.data.values()} == {(SIZE,), (SIZE, 2)}


def test_potentials_of_rows_are_likelihood_and_others_are_prior():
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Potential("rows", pm.logp(pm.Normal.dist(mu * X, sigma), Y))
        pm.Potential("penalty", -(mu**2))
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    with pm.Model() as without:
        pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Normal("y", without["mu"] * X, without["sigma"], observed=Y)
    position = positions_of(ours)[0]
    plain = cm.from_pymc(without)
    difference = ours.log_prior(position) - plain.log_prior(position)
    np.testing.assert_allclose(difference, -(position["mu"] ** 2), rtol=1e-10)


def test_a_custom_density_is_likelihood():
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1)
        pm.CustomDist("y", rate, logp=lambda value, rate: pt.log(rate) - rate * value, observed=np.abs(Y))
    assert_totals_agree(model, cm.from_pymc(model))


def test_a_single_observed_number_is_a_prior_term():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("earlier_study", mu, 0.3, observed=0.7)
        pm.Normal("y", mu, 1, observed=Y)
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    np.testing.assert_allclose(
        np.sum(ours.log_likelihood({"mu": 0.0}, ours.data)), -0.5 * np.sum(Y**2 + np.log(2 * np.pi))
    )


def two_lengths():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("aggregates", mu, 1, observed=np.array([0.4, 0.1, 0.9]))
        pm.Normal("y", mu, 1, observed=Y)
    return model


@pytest.mark.full
def test_observed_variables_of_another_length_are_asked_about():
    model = two_lengths()
    with pytest.raises(cm.InputError, match=r"Which of them are the rows.*rows='y'"):
        cm.from_pymc(model)
    ours = cm.from_pymc(model, rows="y")
    assert_totals_agree(model, ours)
    assert set(ours.data) == {"y"}
    with pytest.raises(cm.InputError, match="names of observed variables"):
        cm.from_pymc(model, rows="mu")


def test_the_scale_of_minibatches_is_undone():
    with pm.Model() as model:
        slope = pm.Normal("slope")
        x, y = pm.Minibatch(X, Y, batch_size=10)
        pm.Normal("y", slope * x, 1, observed=y, total_size=SIZE)
    with pm.Model() as whole:
        slope = pm.Normal("slope")
        pm.Normal("y", slope * X, 1, observed=Y)
    ours, expected = cm.from_pymc(model), cm.from_pymc(whole)
    for position in positions_of(ours):
        np.testing.assert_allclose(total(ours, position), total(expected, position), rtol=1e-10)


def test_minibatches_of_data_are_the_whole_data():
    with pm.Model() as model:
        x, y = pm.Minibatch(pm.Data("x", X), pm.Data("outcome", Y), batch_size=10)
        pm.Normal("y", pm.Normal("slope") * x, 1, observed=y, total_size=SIZE)
    ours = cm.from_pymc(model)
    assert {len(values) for values in ours.data.values()} == {SIZE}
    residual = Y - 0.5 * X
    values = ours.log_likelihood({"slope": np.array(0.5)}, ours.data)
    np.testing.assert_allclose(values, -0.5 * residual**2 - 0.5 * np.log(2 * np.pi), rtol=1e-6)


def latent_rows():
    with pm.Model() as model:
        rate = pm.Normal("rate", 0, 1, shape=SIZE)
        pm.Poisson("y", pm.math.exp(rate), observed=RNG.poisson(2, size=SIZE))
    return model


def random_walk():
    with pm.Model() as model:
        steps = pm.Normal("steps", 0, 1, shape=SIZE - 1)
        pm.Normal("y", pt.concatenate([[0.0], pt.cumsum(steps)]), 1, observed=Y)
    return model


def autoregression():
    with pm.Model() as model:
        pm.AR("y", [pm.Normal("rho")], sigma=1.0, init_dist=pm.Normal.dist(0, 1), observed=Y)
    return model


def cumulative():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu") * pt.cumsum(pm.Data("x", X)), 1, observed=Y)
    return model


def centred_inside():
    with pm.Model() as model:
        x = pm.Data("x", X)
        pm.Normal("y", pm.Normal("mu") * (x - x.mean()), 1, observed=Y)
    return model


def gaussian_process():
    with pm.Model() as model:
        length = pm.HalfNormal("length")
        distance = (X[:, None] - X[None, :]) ** 2
        pm.MvNormal("y", np.zeros(SIZE), cov=pt.exp(-distance / length) + np.eye(SIZE), observed=Y)
    return model


def hidden_size():
    with pm.Model() as model:
        pm.Normal("y", pt.stack([pm.Normal("mu")] * SIZE), 1, observed=Y)
    return model


def discrete():
    with pm.Model() as model:
        label = pm.Bernoulli("label", 0.5)
        pm.Normal("y", label, 1, observed=Y)
    return model


def summed_potential():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1, observed=Y)
        pm.Potential("more", -pt.sum((mu - X) ** 2))
    return model


def only_a_sum():
    with pm.Model() as model:
        pm.Potential("all", -pt.sum((pm.Normal("mu") - X) ** 2))
    return model


def no_density():
    with pm.Model() as model:
        pm.LKJCorr("y", n=2, eta=pm.HalfNormal("eta"), observed=RNG.uniform(-0.5, 0.5, size=(SIZE, 1)))
    return model


def simulator():
    with pm.Model() as model:
        pm.Simulator("y", lambda rng, mean, size=None: rng.normal(mean, size=size), pm.Normal("mean"), observed=Y)
    return model


def nothing_observed():
    with pm.Model() as model:
        pm.Normal("mu")
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (latent_rows, "'rate'.*one value for each of the 60 rows.*integrate such latents out"),
        (random_walk, "'steps'.*almost as many values as there are rows"),
        (autoregression, "one log-density for all rows together.*one row of each independent series"),
        (cumulative, "changes with the order of the rows.*cumulative sums"),
        (centred_inside, "changes with the number or the values of the other rows.*centring"),
        (gaussian_process, "one log-density for all rows together.*Gaussian process over the rows"),
        (hidden_size, r"fixes their number \(60\)"),
        (discrete, "discrete latent variables.*pm.Mixture"),
        (summed_potential, "'more'.*leave the sum out"),
        (only_a_sum, r"without \.sum\(\)"),
        (no_density, "no log-density of such rows in PyMC"),
        (simulator, "log-density that draws random numbers"),
        (nothing_observed, "neither observed variables nor potentials"),
        (lambda: 3, "expected a pymc.Model"),
    ],
)
def test_what_cannot_be_a_coreset_is_refused_with_advice(make, words):
    with pytest.raises(cm.InputError, match=f"(?s){words}"):
        cm.from_pymc(make())


@pytest.mark.full
def test_global_settings_of_jax_stay_as_they_are():
    code = (
        "import os, jax, numpy as np, pymc as pm; import coreset_mcmc as cm\n"
        "before = (jax.config.values.copy(), os.environ.get('XLA_FLAGS'), len(jax.devices()))\n"
        "with pm.Model() as model: pm.Normal('y', pm.Normal('mu'), 1, observed=np.arange(5.0))\n"
        "cm.from_pymc(model)\n"
        "assert before == (jax.config.values, os.environ.get('XLA_FLAGS'), len(jax.devices()))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})


@pytest.fixture(scope="module")
def fitted():
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cm.fit(
            cm.from_pymc(linear(2_000)), coreset_size=100, draws=600, tune=200, random_seed=1, progressbar=False
        )


@pytest.mark.full
@pytest.mark.statistical
def test_coreset_posterior_agrees_with_pymcs_own_sampler(fitted):
    """Means within five standard errors, three parameters: false alarms in fewer than 1 of 10^5 runs if the coreset
    were exact; its own error, a KL of at most 0.02 nats, moves a mean by at most a fifth of a standard deviation.
    """
    with linear(2_000):
        theirs = pm.sample(
            500, tune=500, chains=2, cores=1, random_seed=1, progressbar=False, compute_convergence_checks=False
        )
    assert fitted.kl_estimate < 0.02
    for name in ("sigma", "Intercept", "slope"):
        mine, reference = fitted.posterior[name].to_numpy(), np.asarray(theirs["posterior"][name])
        spread = reference.std()
        tolerance = 5 * spread * np.sqrt(1 / 200 + 1 / 200) + np.sqrt(2 * 0.02) * spread
        assert abs(mine.mean() - reference.mean()) < tolerance


@pytest.mark.full
def test_groups_of_the_result(fitted):
    assert set(fitted.posterior.data_vars) == {"sigma", "Intercept", "slope"}
    assert bool((fitted.posterior["sigma"] > 0).all())
    assert set(fitted.tree["observed_data"].data_vars) == {"y"}


def refit_in_pymc(rows, weights):
    """The recipe of docs/bring_your_model.md."""
    with pm.Model() as model:
        sigma = pm.HalfCauchy("sigma", beta=10)
        intercept = pm.Normal("Intercept", 0, sigma=20)
        slope = pm.Normal("slope", 0, sigma=20)
        one_row = pm.Normal.dist(mu=intercept + slope * rows["x"], sigma=sigma)
        pm.Potential("y", weights * pm.logp(one_row, rows["y"]))
    return model


@pytest.mark.full
def test_recipe_for_pymc_has_the_posterior_of_the_coreset(fitted):
    """The weighted model's log-density is ours at any position, so any sampler finds the same posterior."""
    columns = {"x": fitted.coreset.columns["data_0"], "y": fitted.coreset.columns["y"]}
    weighted = refit_in_pymc(columns, fitted.coreset.weights)
    uniform = refit_in_pymc(columns, np.full(100, 20.0))
    ours = fitted.model
    rows = {key: jnp.asarray(value) for key, value in fitted.coreset.columns.items()}
    for position in positions_of(ours):
        log_density = ours.log_prior(position) + fitted.coreset.weights @ ours.log_likelihood(position, rows)
        np.testing.assert_allclose(pymcs_total(weighted, position), log_density, rtol=1e-8)
        assert abs(pymcs_total(uniform, position) / log_density - 1) > 1e-6, "other weights are another posterior"
