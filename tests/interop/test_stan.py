"""Stan programs: which data are rows, the prior as what is left of the target, and refusals; compiled ones where Stan
can be had."""

from __future__ import annotations

import importlib.util
import shutil

import jax
import numpy as np
import pytest
from scipy import stats

import coreset_mcmc as cm
from coreset_mcmc.interop.stan.adapter import KEY, model_of, rows_of
from coreset_mcmc.interop.stan.services import StanProgram

SIZE = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=SIZE)
Y = 1 + 2 * X + RNG.normal(size=SIZE)
DATA = {"N": SIZE, "x": X, "y": Y}


class Services:
    """What a compiled program of a normal regression with a positive scale answers, in Python."""

    def __init__(self, wrong: bool = False, without: bool = False) -> None:
        self.wrong, self.without = wrong, without

    def log_prob(self, data, position, adjust_transform):
        assert adjust_transform
        if len(position) != 2:
            raise RuntimeError("The number of parameters does not match the number of unconstrained parameters")
        slope, log_scale = position
        prior = stats.norm.logpdf(slope) + stats.expon.logpdf(np.exp(log_scale)) + log_scale
        return prior + self.rows(data, position).sum() * (2.0 if self.wrong else 1.0)

    def rows(self, data, position):
        assert len(data["x"]) == len(data["y"]) == data["N"]
        return stats.norm.logpdf(data["y"], position[0] * np.asarray(data["x"]), np.exp(position[1]))

    def get_param_names(self, data):
        return ["slope", "scale", "mean", "double", *([] if self.without else ["log_lik"])]

    def get_dims(self, data):
        return [[], [], [data["N"]], [], *([] if self.without else [[data["N"]]])]

    def write_array(self, data, position, include_tparams, include_gqs):
        slope, scale = position[0], np.exp(position[1])
        shown = [slope, scale, *(slope * np.asarray(data["x"])), 2 * slope]
        return [*shown, *(self.rows(data, position) if include_gqs and not self.without else [])]

    def transform_inits(self, data, values):
        return [float(values["slope"]), float(np.log(values["scale"]))]


def made(**options) -> cm.Model:
    columns = {"x": X, "y": Y}
    stan = StanProgram(Services(**options), {}, ("N",), {key: value.dtype for key, value in columns.items()})
    return model_of(stan, columns, "log_lik", "stan", identity=None)


def test_prior_and_rows_are_those_of_the_target():
    model = made()
    position = {KEY: np.array([0.4, -0.2])}
    values = model.log_likelihood.function(position, model.data)
    np.testing.assert_allclose(values, stats.norm.logpdf(Y, 0.4 * X, np.exp(-0.2)), rtol=1e-10)
    prior = stats.norm.logpdf(0.4) + stats.expon.logpdf(np.exp(-0.2)) - 0.2
    np.testing.assert_allclose(model.log_prior.function(position), prior, rtol=1e-8)


def test_names_and_values_of_the_user():
    model = made()
    with jax.enable_x64(True):
        shown = model.constrain({KEY: np.array([0.4, -0.2])})
    assert {key: float(value) for key, value in shown.items()} == pytest.approx(
        {"slope": 0.4, "scale": np.exp(-0.2), "double": 0.8}
    )
    moved = model.unconstrain({"scale": 2.0}, {KEY: np.array([0.4, -0.2])})
    np.testing.assert_allclose(moved[KEY], [0.4, np.log(2.0)])
    with pytest.raises(cm.InputError, match="names among"):
        model.unconstrain({"sigma": 2.0}, {KEY: np.array([0.4, -0.2])})


@pytest.mark.full
def test_it_is_fitted_like_any_other_function():
    """Means and deviations under their own names against a grid, within Monte Carlo error and what the KL allows."""
    fitted = cm.fit(made(), coreset_size=30, draws=400, chains=2, random_seed=0, progressbar=False)
    slope, log_scale = np.meshgrid(np.linspace(0.5, 3.5, 401), np.linspace(-0.5, 1.2, 301), indexing="ij")
    log_density = stats.norm.logpdf(slope) + stats.expon.logpdf(np.exp(log_scale)) + log_scale
    log_density += sum(stats.norm.logpdf(y, slope * x, np.exp(log_scale)) for x, y in zip(X, Y, strict=True))
    density = np.exp(log_density - log_density.max())
    for name, values in {"slope": slope, "scale": np.exp(log_scale), "double": 2 * slope}.items():
        mean = np.sum(values * density) / density.sum()
        deviation = np.sqrt(np.sum((values - mean) ** 2 * density) / density.sum())
        draws = fitted.posterior[name].to_numpy()
        ess = float(cm.metrics.bulk_ess(draws[..., None])[0])
        slack = 4.5 / np.sqrt(ess) + np.sqrt(2 * max(fitted.kl_estimate, 0.0))
        assert draws.mean() == pytest.approx(mean, abs=deviation * slack)
        assert draws.std() == pytest.approx(deviation, rel=slack)
    assert fitted.kl_estimate < 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wrong": True}, "(?s)'log_lik' whose sum changes by.*target of these rows changes by.*row by row"),
        ({"without": True}, r"(?s)no 'log_lik'.*generated quantities \{ vector\[N\] log_lik"),
    ],
)
def test_log_lik_must_be_the_likelihood(options, words):
    with pytest.raises(cm.InputError, match=words):
        made(**options)


def test_rows_are_the_arrays_that_a_whole_number_counts():
    data = {key: np.asarray(value) for key, value in {**DATA, "J": 3, "scale": 2.5, "group": np.arange(3)}.items()}
    with pytest.raises(cm.InputError, match=r"rows=\['x', 'y'\]"):
        rows_of(data, None)
    assert rows_of(data, ["x", "y"]) == (("x", "y"), ("N",))
    assert rows_of({key: np.asarray(value) for key, value in DATA.items()}, None) == (("x", "y"), ("N",))
    with pytest.raises(cm.InputError, match="'scale'"):
        rows_of(data, ["x", "scale"])


PROGRAM = """
data {
  int<lower=1> N;
  vector[N] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> tau;
}
model {
  alpha ~ normal(0, 1);
  tau ~ normal(0, 1);
  beta ~ normal(0, tau);
  y ~ bernoulli_logit(alpha + beta * x);
}
generated quantities {
  vector[N] log_lik;
  for (n in 1:N)
    log_lik[n] = bernoulli_logit_lpmf(y[n] | alpha + beta * x[n]);
}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("httpstan") is None or shutil.which("g++") is None, reason="needs httpstan and g++"
)
def test_a_compiled_program_has_its_own_density():
    """Against the same model written by hand; Stan drops constants of the priors."""
    y = (X > 0).astype(int)
    model = cm.from_stan(PROGRAM, {"N": SIZE, "x": X, "y": y})

    def prior(at):
        tau = np.exp(at[2])
        return stats.norm.logpdf(at[0]) - 0.5 * tau**2 + at[2] + stats.norm.logpdf(at[1], 0, tau)

    one, other = np.array([0.2, -0.3, 0.1]), np.array([-0.5, 0.8, -0.4])
    ours = [model.log_prior.function({KEY: at}) for at in (one, other)]
    np.testing.assert_allclose(ours[0] - ours[1], prior(one) - prior(other), rtol=1e-8)
    values = model.log_likelihood.function({KEY: one}, model.data)
    eta = 0.2 - 0.3 * X
    np.testing.assert_allclose(values, y * eta - np.logaddexp(0, eta), rtol=1e-8)
