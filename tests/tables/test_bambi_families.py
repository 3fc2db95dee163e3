"""Log-posteriors of every family and of effects of groups against Bambi's, with the same priors given to both.

Bambi's own defaults are taken for the parameters of families and for the spread of groups. Thresholds of ordered
responses have their prior at the means of the predictors here and where these are zero in Bambi, so Bambi gets centred
predictors. Bambi's probit is off by some 1e-7, because it has the square root of 2 in single precision: that link is
held to SciPy in test_families.py.
"""

from __future__ import annotations

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.tables.families import FAMILIES
from tests.helpers.family_examples import LEFT, families_table

pytestmark = pytest.mark.full

CASES = [(f"{left} ~ x + g", name, None) for name, left in LEFT.items() if name != "cumulative"]
CASES += [
    ("success ~ x + g", "bernoulli", "cloglog"),
    ("p(k, n) ~ x + g", "binomial", "cloglog"),
    ("share ~ x + g", "beta", "cloglog"),
    ("amount ~ 1", "gamma", "inverse"),
    ("censored(amount, status) ~ x + g", "exponential", None),
    ("censored(amount, status) ~ x + g", "weibull", None),
    ("rating ~ x", "cumulative", None),
]
GROUPS = [
    ("y ~ x + (1|g)", "gaussian", None),
    ("y ~ x + (x|g) + (1|h)", "gaussian", None),
    ("y ~ g + (0 + x|h)", "gaussian", None),
    ("y ~ x + (g|h)", "gaussian", None),
    ("y ~ x + (1|g/h)", "t", None),
    ("success ~ x * g + (1|h)", "bernoulli", None),
    ("p(k, n) ~ x + (x|g)", "binomial", None),
    ("count ~ x + (1|g) + (1|n)", "negativebinomial", None),
    ("amount ~ x + (x|g)", "gamma", "log"),
    ("choice ~ x + (x|g)", "categorical", None),
    ("rating ~ x + (1|g)", "cumulative", None),
]


def bambi_model(formula, family, link, terms, frame, *, is_ordered):
    bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
    priors = {} if is_ordered else {"Intercept": bmb.Prior("Normal", mu=1, sigma=2)}
    priors |= {name: bmb.Prior("Normal", mu=0, sigma=1.5) for name in terms}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {} if link is None else {"link": link}
        model = bmb.Model(formula, frame, family=family, priors=priors, noncentered=False, **options)
        model.build()
    return model.backend.model


def values_of_bambi(pymc_model, values, centre):
    """The point of a PyMC model that has these values."""
    point = {}
    for variable in pymc_model.value_vars:
        name = re.sub("_(log|logodds|ordered)__$", "", variable.name)
        value = values[name]
        if name == "Intercept":
            value = value + centre
        elif name == "threshold":
            value = value - centre
            value = np.concatenate([value[:1], np.log(np.diff(value))])
        elif variable.name.endswith("_log__"):
            value = np.log(value)
        elif variable.name.endswith("_logodds__"):
            value = np.log(value) - np.log1p(-value)
        point[variable.name] = value
    return point


@pytest.mark.parametrize(("formula", "family", "link"), [*CASES, *GROUPS])
def test_the_log_posterior_is_that_of_bambi(formula, family, link):
    frame, is_ordered = families_table(), FAMILIES[family].is_ordered
    given = {"coefficients": "Normal(0, 1.5)", **({} if is_ordered else {"Intercept": "Normal(1, 2)"})}
    ours = cm.regression(formula, frame, family=family, link=link, priors=given)
    terms = [term.name for term in ours.design.terms]
    shown = frame.assign(x=frame["x"] - frame["x"].mean()) if is_ordered else frame
    theirs = bambi_model(formula, family, link, terms, shown, is_ordered=is_ordered)
    log_density = theirs.compile_logp(jacobian=True)
    rng, differences = np.random.default_rng(1), []
    rows = jax.tree.map(jnp.asarray, ours.data)
    for _ in range(3):
        start = ours.model.initial_position
        position = {name: value + 0.3 * rng.normal(size=np.shape(value)) for name, value in start.items()}
        values = {name: np.asarray(value) for name, value in ours.model.constrain(position).items()}
        of_terms = [np.reshape(values[term.name], (-1, *_trailing(values, term))) for term in ours.design.terms]
        centre = ours.design.means @ np.concatenate(of_terms) if of_terms else 0.0
        mine = float(ours.model.log_prior(position) + jnp.sum(ours.model.log_likelihood(position, rows)))
        differences.append(mine - float(log_density(values_of_bambi(theirs, values, centre))))
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)
    assert set(values) == {re.sub("_(log|logodds|ordered)__$", "", variable.name) for variable in theirs.value_vars}
    for name in values:
        dims = tuple((ours.model.dims or {}).get(name, ()))
        assert dims == tuple(theirs.named_vars_to_dims.get(name) or ()), name


def _trailing(values, term):
    """The axis of the levels of a response."""
    value = values[term.name]
    is_vector = value.ndim == 2 or (value.ndim == 1 and term.levels is None)
    return value.shape[-1:] if is_vector else ()
