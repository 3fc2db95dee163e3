"""The lines of docs/many_parameters.md that take a Gaussian term to NumPyro, PyMC and Stan have our log density."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.code_blocks import ROOT

pytestmark = pytest.mark.full

NUM_ROWS, NUM_FEATURES = 9, 3
DIM = NUM_FEATURES + 1
PAGE = (ROOT / "docs" / "many_parameters.md").read_text(encoding="utf-8")


def expression(opening: str, closing: str) -> str:
    """What the one line of the page between these says."""
    (found,) = re.findall(re.escape(opening) + "(.*)" + re.escape(closing) + "$", PAGE, re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def coreset():
    """Rows, weights, a term, a few positions, and our log density there without its mean."""
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(NUM_ROWS, NUM_FEATURES)), "y": (rng.random(NUM_ROWS) < 0.5).astype(float)}
    factor, weights = rng.normal(size=(DIM, DIM)), rng.exponential(size=NUM_ROWS)
    term = GaussianTerm(rng.normal(size=DIM), rng.normal(size=DIM), factor @ factor.T)
    positions = rng.normal(size=(5, DIM))
    with jax.enable_x64(True):
        target = CoresetTarget(rows, jnp.asarray(weights), cm.models.logistic_regression(NUM_FEATURES), term)
        ours = np.array([target.log_density({"beta": jnp.asarray(at)}) for at in positions])
    return rows, weights, term, positions, ours - ours.mean()


def test_numpyro(coreset):
    numpyro = pytest.importorskip("numpyro")
    rows, weights, term, positions, ours = coreset
    line = expression('numpyro.factor("gaussian_term", ', ")")

    def small():
        beta = numpyro.sample("beta", numpyro.distributions.Cauchy(0, 1).expand([DIM]).to_event(1))
        names = {"delta": beta - term.centre, "slope": term.slope, "precision": term.precision}
        numpyro.factor("gaussian_term", eval(line, names))
        with numpyro.plate("data", NUM_ROWS), numpyro.handlers.scale(scale=weights):
            logits = beta[0] + rows["x"] @ beta[1:]
            numpyro.sample("y", numpyro.distributions.Bernoulli(logits=logits), obs=rows["y"])

    with jax.enable_x64(True):
        theirs = [numpyro.infer.util.log_density(small, (), {}, {"beta": jnp.asarray(at)})[0] for at in positions]
    np.testing.assert_allclose(np.array(theirs) - np.mean(theirs), ours, atol=1e-8)


def test_pymc(coreset):
    pm = pytest.importorskip("pymc")
    import pytensor.tensor as pt

    rows, weights, term, positions, ours = coreset
    line = expression('pm.Potential("gaussian_term", ', ")")
    with pm.Model() as small:
        beta = pm.Cauchy("beta", 0, 1, shape=DIM)
        names = {"pt": pt, "delta": beta - term.centre, "slope": term.slope, "precision": term.precision}
        pm.Potential("gaussian_term", eval(line, names))
        one_row = pm.Bernoulli.dist(logit_p=beta[0] + pt.dot(rows["x"], beta[1:]))
        pm.Potential("y", weights * pm.logp(one_row, rows["y"]))
    density = small.compile_logp()
    theirs = np.array([density({"beta": at}) for at in positions])
    np.testing.assert_allclose(theirs - theirs.mean(), ours, atol=1e-8)


def test_stan_by_hand(coreset):
    """Its line is Python, too, once the two functions of Stan are defined."""
    rows, weights, term, positions, ours = coreset
    line = expression("target += ", ";")
    model: Model = cm.models.logistic_regression(NUM_FEATURES)
    theirs = []
    for beta in positions:
        names = {
            "dot_product": np.dot,
            "quad_form": lambda matrix, vector: vector @ matrix @ vector,
            "beta": beta,
            **term.arrays(),
        }
        with jax.enable_x64(True):
            position = {"beta": jnp.asarray(beta)}
            rest = float(model.log_prior(position) + weights @ model.log_likelihood(position, rows))
        theirs.append(rest + eval(line, names))
    np.testing.assert_allclose(np.array(theirs) - np.mean(theirs), ours, atol=1e-8)
