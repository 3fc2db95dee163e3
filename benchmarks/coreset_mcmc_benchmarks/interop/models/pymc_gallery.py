"""Models of PyMC's gallery, typed anew in their smallest form, on data of any size drawn from them.

Sources: the PyMC examples "GLM: linear regression", "GLM: logistic regression", "A primer on Bayesian methods for
multilevel modeling" (radon), "GLM: negative binomial regression", "GLM: robust regression" and "Marginalized Gaussian
mixture model".
"""

from __future__ import annotations

import numpy as np
import pymc as pm

COUNTIES = ["Aitkin", "Anoka", "Becker", "Benton", "Brown"]


def linear(size: int) -> pm.Model:
    """NumPy data; no dims."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=size)
    y = 1 + 2 * x + rng.normal(scale=0.5, size=size)
    with pm.Model() as model:
        sigma = pm.HalfCauchy("sigma", beta=10)
        intercept = pm.Normal("Intercept", 0, sigma=20)
        slope = pm.Normal("slope", 0, sigma=20)
        pm.Normal("y", mu=intercept + slope * x, sigma=sigma, observed=y)
    return model


def logistic(size: int) -> pm.Model:
    """pm.Data with dims, a deterministic for each row and one that is not."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(size, 3))
    outcome = rng.binomial(1, 1 / (1 + np.exp(-(0.5 + features @ [1.0, -1.0, 0.5]))))
    with pm.Model(coords={"feature": ["age", "education", "hours"]}) as model:
        x = pm.Data("x", features, dims=("person", "feature"))
        y = pm.Data("outcome", outcome, dims="person")
        b0 = pm.Normal("b0", 0, sigma=2)
        b = pm.Normal("b", 0, sigma=2, dims="feature")
        pm.Deterministic("odds", pm.math.exp(b), dims="feature")
        p = pm.Deterministic("p", pm.math.sigmoid(b0 + pm.math.dot(x, b)), dims="person")
        pm.Bernoulli("income", p=p, observed=y, dims="person")
    return model


def radon(size: int) -> pm.Model:
    """Varying intercepts, indexed by rows."""
    rng = np.random.default_rng(3)
    county, floor = rng.integers(len(COUNTIES), size=size), rng.integers(2, size=size).astype(float)
    level = np.array([1.0, 1.3, 1.6, 0.8, 1.9])
    log_radon = rng.normal(level[county] - 0.6 * floor, 0.7)
    with pm.Model(coords={"county": COUNTIES, "obs": np.arange(size)}) as model:
        mu_a = pm.Normal("mu_a", 0, sigma=10)
        sigma_a = pm.Exponential("sigma_a", 1)
        alpha = pm.Normal("alpha", mu=mu_a, sigma=sigma_a, dims="county")
        beta = pm.Normal("beta", 0, sigma=10)
        sigma_y = pm.Exponential("sigma_y", 1)
        y_hat = alpha[county] + beta * floor
        pm.Normal("y", mu=y_hat, sigma=sigma_y, observed=log_radon, dims="obs")
    return model


def sneezes(size: int) -> pm.Model:
    """A negative binomial with an interaction."""
    rng = np.random.default_rng(4)
    alcohol, meds = rng.integers(2, size=size), rng.integers(2, size=size)
    rate = np.exp(0.7 + 0.9 * alcohol + 0.3 * meds + 0.4 * alcohol * meds)
    sneezed = rng.negative_binomial(4, 4 / (4 + rate))
    with pm.Model() as model:
        alpha = pm.Exponential("alpha", 1.0)
        intercept = pm.Normal("Intercept", 0, 2)
        b_alcohol = pm.Normal("alcohol", 0, 2)
        b_meds = pm.Normal("meds", 0, 2)
        b_both = pm.Normal("alcohol:meds", 0, 2)
        eta = intercept + b_alcohol * alcohol + b_meds * meds + b_both * alcohol * meds
        pm.NegativeBinomial("nsneeze", mu=pm.math.exp(eta), alpha=alpha, observed=sneezed)
    return model


def robust(size: int) -> pm.Model:
    """Student-t errors."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=size)
    y = 1 + 2 * x + 0.5 * rng.standard_t(4, size=size)
    with pm.Model() as model:
        intercept = pm.Normal("intercept", mu=0, sigma=5)
        slope = pm.Normal("slope", mu=0, sigma=5)
        sigma = pm.HalfNormal("sigma", sigma=2)
        nu = pm.InverseGamma("nu", alpha=3, beta=8)
        pm.StudentT("y", nu=nu, mu=intercept + slope * pm.Data("x", x), sigma=sigma, observed=y)
    return model


def mixture(size: int) -> pm.Model:
    """Labels summed out; ordered means, weights on the simplex."""
    rng = np.random.default_rng(6)
    label = rng.choice(2, size=size, p=[0.35, 0.65])
    x = rng.normal(np.array([-1.5, 2.0])[label], np.array([0.6, 1.0])[label])
    with pm.Model(coords={"component": [0, 1]}) as model:
        w = pm.Dirichlet("w", np.ones(2), dims="component")
        mu = pm.Normal("mu", 0, 5, dims="component", transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
        tau = pm.Gamma("tau", 1.0, 1.0, dims="component")
        pm.NormalMixture("x", w, mu, tau=tau, observed=x)
    return model


MODELS = {
    "linear": linear,
    "logistic": logistic,
    "mixture": mixture,
    "radon": radon,
    "robust": robust,
    "sneezes": sneezes,
}
