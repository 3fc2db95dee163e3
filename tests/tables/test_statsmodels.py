"""Coefficients against maximum likelihood in statsmodels, for every family that it has: within 0.1 standard errors.

The posterior mean is that of 4 000 draws of the Laplace approximation, with a Monte Carlo error of 0.016 standard
errors; default priors move it by less than a hundredth at 10^5 rows.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm

NAMES = ["Intercept", "x", "g[b]"]


@cache
def simulated(size: int) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"x": rng.normal(2.0, 1.5, size), "g": rng.choice(["a", "b"], size, p=[0.7, 0.3])})
    eta = -0.8 + 0.4 * frame["x"].to_numpy() + 0.5 * (frame["g"] == "b").to_numpy()
    mean, chance = np.exp(eta), 1 / (1 + np.exp(-eta))
    frame["y"] = eta + 1.3 * rng.normal(size=size)
    frame["success"] = (rng.random(size) < chance).astype(int)
    frame["n"] = rng.integers(1, 9, size)
    frame["k"] = rng.binomial(frame["n"], chance)
    frame["count"] = rng.poisson(mean)
    frame["spread"] = rng.poisson(mean * rng.gamma(1.7, 1 / 1.7, size))
    is_count = rng.random(size) < 0.65
    frame["inflated"] = frame["count"] * is_count
    frame["inflated_spread"] = frame["spread"] * is_count
    at_least_one = np.where(frame["count"] > 0, frame["count"], 1)
    frame["hurdle"] = at_least_one * is_count
    frame["amount"] = rng.gamma(2.5, mean / 2.5)
    frame["slow"] = rng.gamma(2.5, 1 / (0.6 + 0.1 * (frame["x"] + 5).clip(lower=0)) / 2.5)
    frame["share"] = np.clip(rng.beta(6 * chance, 6 * (1 - chance)), 1e-9, 1 - 1e-9)
    frame["rating"] = np.digitize(eta + rng.logistic(size=size), [-1.0, 0.3, 1.5])
    scores = np.stack([np.zeros(size), eta, 0.3 - 0.5 * eta], axis=1) + rng.gumbel(size=(size, 3))
    frame["choice"] = np.array(["p", "q", "r"])[scores.argmax(axis=1)]
    return frame


def design(frame: pd.DataFrame) -> np.ndarray:
    return np.stack([np.ones(len(frame)), frame["x"], frame["g"] == "b"], axis=1).astype(float)


def by_glm(response, family_name, link_name=None, **options):
    def fitted(frame):
        sm = pytest.importorskip("statsmodels.api")
        link = None if link_name is None else getattr(sm.families.links, link_name)()
        family = getattr(sm.families, family_name)(**({} if link is None else {"link": link}), **options)
        y = np.stack([frame["k"], frame["n"] - frame["k"]], axis=1) if response == "k" else frame[response]
        result = sm.GLM(np.asarray(y, float), design(frame), family=family).fit(tol=1e-12)
        return np.asarray(result.params), np.asarray(result.bse)

    return fitted


def by_model(path, response, count=3, start=0, **options):
    def fitted(frame):
        module, _, name = path.rpartition(".")
        kind = getattr(pytest.importorskip(module), name)
        given = {"exog_infl": np.ones((len(frame), 1))} if "ZeroInflated" in name else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind(frame[response].to_numpy(float), design(frame), **given, **options)
            result = model.fit(disp=0, method="bfgs", maxiter=2000, gtol=1e-7)
        found, errors = np.asarray(result.params), np.asarray(result.bse)
        return found[start : start + count], errors[start : start + count]

    return fitted


def by_order(frame):
    kind = pytest.importorskip("statsmodels.miscmodels.ordinal_model").OrderedModel
    result = kind(frame["rating"].to_numpy(), design(frame)[:, 1:], distr="logit").fit(method="bfgs", disp=0)
    return np.asarray(result.params)[:2], np.asarray(result.bse)[:2]


def by_softmax(frame):
    sm = pytest.importorskip("statsmodels.api")
    codes = np.searchsorted(["p", "q", "r"], frame["choice"].to_numpy(str))
    result = sm.MNLogit(codes, design(frame)).fit(disp=0, method="newton")
    return np.ravel(result.params), np.ravel(result.bse)


COUNTS = "statsmodels.discrete.count_model"
CASES = {
    "gaussian": ("y", {}, by_glm("y", "Gaussian")),
    "logit": ("success", {"family": "bernoulli"}, by_glm("success", "Binomial")),
    "probit": ("success", {"family": "bernoulli", "link": "probit"}, by_glm("success", "Binomial", "Probit")),
    "cloglog": ("success", {"family": "bernoulli", "link": "cloglog"}, by_glm("success", "Binomial", "CLogLog")),
    "binomial": ("p(k, n)", {"family": "binomial"}, by_glm("k", "Binomial")),
    "binomial probit": ("p(k, n)", {"family": "binomial", "link": "probit"}, by_glm("k", "Binomial", "Probit")),
    "poisson": ("count", {"family": "poisson"}, by_glm("count", "Poisson")),
    "gamma": ("amount", {"family": "gamma"}, by_glm("amount", "Gamma", "Log")),
    "gamma inverse": ("slow", {"family": "gamma", "link": "inverse"}, by_glm("slow", "Gamma", "InversePower")),
    "negativebinomial": (
        "spread",
        {"family": "negativebinomial"},
        by_model("statsmodels.discrete.discrete_model.NegativeBinomial", "spread"),
    ),
    "beta": ("share", {"family": "beta"}, by_model("statsmodels.othermod.betareg.BetaModel", "share")),
    "zero_inflated_poisson": (
        "inflated",
        {"family": "zero_inflated_poisson"},
        by_model(f"{COUNTS}.ZeroInflatedPoisson", "inflated", start=1),
    ),
    "zero_inflated_negativebinomial": (
        "inflated_spread",
        {"family": "zero_inflated_negativebinomial"},
        by_model(f"{COUNTS}.ZeroInflatedNegativeBinomialP", "inflated_spread", start=1),
    ),
    "cumulative": ("rating", {"family": "cumulative"}, by_order),
    "categorical": ("choice", {"family": "categorical"}, by_softmax),
}


def posterior_means(left: str, frame: pd.DataFrame, options: dict) -> np.ndarray:
    model = cm.from_formula(f"{left} ~ x + g", frame, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = cm.fit(model, method=cm.Laplace(psis=False), draws=1000, tune=0, random_seed=0, progressbar=False)
    names = [name for name in ("Intercept", "x", "g") if name in fitted.posterior]
    means = [np.atleast_1d(fitted.posterior[name].mean(("chain", "draw")).to_numpy()) for name in names]
    return np.concatenate([np.reshape(mean, (-1, *mean.shape[1:])) for mean in means], axis=None)


def largest_error(name: str, size: int) -> float:
    left, options, fitted = CASES[name]
    frame = simulated(size)
    found = posterior_means(left, frame, options)
    expected, errors = fitted(frame)
    return float(np.max(np.abs(found - expected) / errors))


@pytest.mark.full
@pytest.mark.parametrize("name", ["gamma", "binomial probit"])
def test_coefficients_of_few_rows(name):
    """At 4 000 rows a default prior moves a mean by up to a few hundredths of a standard error."""
    assert largest_error(name, 4_000) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_coefficients_are_those_of_maximum_likelihood(name):
    assert largest_error(name, 100_000) < 0.1
