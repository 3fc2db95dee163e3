"""Every family of Bambi, and models of its gallery that are more than a family: groups, splines, censoring, parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import bambi as bmb
import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.interop.catalogue.entry import Register
from coreset_mcmc_benchmarks.interop.models import bambi_gallery

BAMBI = Register("Bambi")
NUM_GROUPS = 8
LEVELS = ["low", "middle", "high"]


def table(size: int) -> pd.DataFrame:
    """Covariates, groups, and a response of every kind."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=size), rng.uniform(0, 1, size=size)
    group, person = rng.integers(NUM_GROUPS, size=size), rng.integers(NUM_GROUPS, size=size)
    line = 0.3 + 0.5 * x + rng.normal(scale=0.3, size=NUM_GROUPS)[group]
    count = rng.poisson(np.exp(line))
    positive = rng.gamma(3.0, np.exp(line) / 3.0)
    is_there = rng.integers(2, size=size)
    answer = np.digitize(line + rng.logistic(size=size), [-0.5, 1.0])
    parts = rng.multinomial(10, [0.2, 0.3, 0.5], size=size)
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "group": [f"g{number}" for number in group],
            "person": [f"p{number}" for number in person],
            "real": line + rng.normal(scale=0.5, size=size),
            "positive": positive,
            "with_zeros": positive * is_there,
            "share": rng.beta(2.0, 3.0, size=size),
            "flag": rng.integers(2, size=size),
            "count": count,
            "many_zeros": count * is_there,
            "of_ten": rng.binomial(10, 0.4, size=size),
            "ten": np.full(size, 10),
            "angle": rng.vonmises(0.3, 2.0, size=size),
            "answer": pd.Categorical(np.array(LEVELS)[answer], categories=LEVELS, ordered=True),
            "choice": np.array(["bus", "car", "foot"])[rng.integers(3, size=size)],
            "a": parts[:, 0],
            "b": parts[:, 1],
            "c": parts[:, 2],
            "censoring": np.where(positive > 3.0, "right", "none"),
            "observed": np.minimum(positive, 3.0),
            "upper": np.where(z > 0.5, 20.0, np.inf),
        }
    )


FAMILIES = {
    "asymmetriclaplace": "real ~ x",
    "bernoulli": "flag ~ x",
    "beta": "share ~ x",
    "beta_binomial": "p(of_ten, ten) ~ x",
    "binomial": "p(of_ten, ten) ~ x",
    "categorical": "choice ~ x",
    "cumulative": "answer ~ x",
    "dirichlet_multinomial": "c(a, b, c) ~ x",
    "exponential": "positive ~ x",
    "gamma": "positive ~ x",
    "gaussian": "real ~ x",
    "hurdle_gamma": "with_zeros ~ x",
    "hurdle_lognormal": "with_zeros ~ x",
    "hurdle_negativebinomial": "many_zeros ~ x",
    "hurdle_poisson": "many_zeros ~ x",
    "laplace": "real ~ x",
    "multinomial": "c(a, b, c) ~ x",
    "negativebinomial": "count ~ x",
    "poisson": "count ~ x",
    "sratio": "answer ~ x",
    "t": "real ~ x",
    "vonmises": "angle ~ x",
    "wald": "positive ~ x",
    "weibull": "positive ~ x",
    "zero_inflated_binomial": "p(of_ten, ten) ~ x",
    "zero_inflated_negativebinomial": "many_zeros ~ x",
    "zero_inflated_poisson": "many_zeros ~ x",
}
"""A formula for each; :func:`table` has the columns."""
LINKS = {"gamma": "log", "exponential": "log", "wald": "log", "weibull": "log", "hurdle_gamma": "log"}
"""Where the default link of Bambi leaves the support."""
MIXED = ("hurdle", "zero_inflated", "asymmetric", "beta_binomial", "dirichlet", "vonmises")
"""Beginnings of families that are no generalised linear models."""


def of_family(name: str, size: int, **options: Any) -> bmb.Model:
    """A regression of this family, with the defaults of Bambi."""
    link = {"link": LINKS[name]} if name in LINKS else {}
    return bmb.Model(FAMILIES[name], table(size), family=name, **link, **options)


for _name in FAMILIES:
    BAMBI.add(f"family {_name}", glm=not _name.startswith(MIXED))(partial(of_family, _name))

for _name, _make in bambi_gallery.MODELS.items():
    BAMBI.add(f"gallery: {_name}", glm=_name != "sleepstudy")(_make)


def regression(formula: Any, **options: Any) -> Callable[[int], bmb.Model]:
    """A model of the table."""
    return lambda size: bmb.Model(formula, table(size), **options)


BAMBI.add("censored response")(
    lambda size: bmb.Model("censored(observed, censoring) ~ x", table(size), family="weibull", link="log")
)
BAMBI.add("censored response, gaussian")(regression("censored(observed, censoring) ~ x"))
PRIORS = {
    "Intercept": bmb.Prior("Normal", mu=1, sigma=3),
    "x": bmb.Prior("Normal", mu=0, sigma=3),
    "sigma": bmb.Prior("HalfNormal", sigma=3),
}
"""Bambi's default priors are not finite where bounds are infinite."""
BAMBI.add("truncated response")(regression("truncated(positive, lb=0) ~ x", priors=PRIORS))
BAMBI.add("truncated response, a bound in each row")(
    regression("truncated(positive, lb=0, ub=upper) ~ x", priors=PRIORS)
)
BAMBI.add("truncated response, default priors", refused="the default priors are not")(
    regression("truncated(positive, lb=0) ~ x")
)
BAMBI.add("constrained response")(regression("constrained(positive, lb=0) ~ x", priors=PRIORS))
BAMBI.add("weighted response")(regression("weighted(real, positive) ~ x"))
BAMBI.add("weighted response, gamma", refused="weighted.*parameters in the wrong order")(
    regression("weighted(positive, z) ~ x", family="gamma", link="log")
)
BAMBI.add("varying intercepts")(regression("real ~ x + (1 | group)"))
BAMBI.add("varying intercepts, centred")(regression("real ~ x + (1 | group)", noncentered=False))
BAMBI.add("varying slopes")(regression("real ~ x + (x | group)"))
BAMBI.add("crossed groups")(regression("real ~ x + (1 | group) + (1 | person)"))
BAMBI.add("groups of counts")(regression("count ~ x + (1 | group)", family="poisson"))
BAMBI.add("groups of answers")(regression("answer ~ x + (1 | group)", family="cumulative"))
BAMBI.add("groups of choices")(regression("choice ~ x + (1 | group)", family="categorical"))
BAMBI.add("groups without an intercept")(regression("real ~ 0 + x + (0 + x | group)"))
BAMBI.add("splines", glm=True)(regression("real ~ bs(x, df=6)"))
BAMBI.add("polynomials", glm=True)(regression("real ~ poly(x, 3) + z"))
BAMBI.add("interactions", glm=True)(regression("real ~ x * z * group"))
BAMBI.add("offset", glm=True)(regression("count ~ x + offset(log(ten))", family="poisson"))
BAMBI.add("a scale with a predictor")(regression(bmb.Formula("real ~ x", "sigma ~ z")))
BAMBI.add("a shape with groups")(
    regression(
        bmb.Formula("positive ~ x", "alpha ~ z + (1 | group)"), family="gamma", link={"mu": "log", "alpha": "log"}
    )
)
BAMBI.add("inflation with a predictor")(
    regression(bmb.Formula("many_zeros ~ x", "psi ~ z"), family="zero_inflated_poisson")
)
BAMBI.add("Gaussian process by basis functions")(regression("real ~ 0 + hsgp(x, m=8, c=2)"))
BAMBI.add("probit", glm=True)(regression("flag ~ x", family="bernoulli", link="probit"))
BAMBI.add("complementary log-log", glm=True)(regression("flag ~ x", family="bernoulli", link="cloglog"))
BAMBI.add("an effect for each row", refused="one value for each of the")(
    lambda size: bmb.Model("real ~ x + (1 | row)", table(size).assign(row=[f"r{number}" for number in range(size)]))
)
