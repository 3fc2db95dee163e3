"""Operations that PyTensor cannot turn into JAX, or only without rows: categories, ordinal answers, normal tails."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import coreset_mcmc as cm
from tests.helpers.pymc_totals import assert_totals_agree, positions_of

pm = pytest.importorskip("pymc", reason="needs PyMC: pip install coreset-mcmc[pymc]")
import pytensor.tensor as pt  # noqa: E402
from pymc.distributions.dist_math import log_diff_normal_cdf, normal_lccdf, normal_lcdf  # noqa: E402

from coreset_mcmc.interop.pymc.jax_functions import to_jax  # noqa: E402

SIZE = 300
"""More than eight bits can count."""
RNG = np.random.default_rng(0)
X, LABEL = RNG.normal(size=SIZE), RNG.integers(3, size=SIZE)
Y = 1 + X + RNG.normal(size=SIZE)
BOUND = np.where(X > 0, 1.0, np.inf)
SINGLE_PRECISION = 1e-7
"""PyMC divides by the square root of two in single precision."""


def cuts():
    return pm.Normal("cuts", 0, 2, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])


def normal():
    return pm.Normal.dist(pm.Normal("mean") + pm.Normal("slope") * X, pm.HalfNormal("scale"))


MODELS = {
    "categorical": lambda: pm.Categorical(
        "y", p=pm.math.softmax(X[:, None] * pm.Normal("b", shape=3), axis=1), observed=LABEL
    ),
    "categorical of logits": lambda: pm.Categorical(
        "y", logit_p=pt.concatenate([pt.zeros((SIZE, 1)), X[:, None] * pm.Normal("b", shape=2)], axis=1), observed=LABEL
    ),
    "ordered logistic": lambda: pm.OrderedLogistic("y", eta=pm.Normal("b") * X, cutpoints=cuts(), observed=LABEL),
    "ordered probit": lambda: pm.OrderedProbit("y", eta=pm.Normal("b") * X, cutpoints=cuts(), observed=LABEL),
    "censored": lambda: pm.Censored("y", normal(), lower=None, upper=1.0, observed=np.minimum(Y, 1.0)),
    "bounds of rows": lambda: pm.Censored("y", normal(), lower=None, upper=BOUND, observed=np.minimum(Y, BOUND)),
    "truncated": lambda: pm.Truncated("y", normal(), lower=-6.0, observed=Y),
    "truncated normal": lambda: pm.TruncatedNormal(
        "y", pm.Normal("mean"), pm.HalfNormal("scale"), lower=-9.0, upper=9.0, observed=Y
    ),
}
FAST = ("ordered logistic", "bounds of rows")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.full) for name in MODELS]
)
def test_they_convert_to_pymcs_log_density(name):
    with pm.Model() as model:
        MODELS[name]()
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    position = positions_of(ours)[0]
    few = {key: value[:5] for key, value in ours.data.items()}
    slopes = jax.jit(jax.grad(lambda at: jnp.sum(ours.log_likelihood(at, few))))(position)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize(("make", "sign"), [(normal_lcdf, 1), (normal_lccdf, -1)])
def test_logarithms_of_tails_have_slopes_everywhere(make, sign):
    """Also where the branch of the formula that is not taken overflows."""
    places = np.array([-1e4, -200.0, -40.0, -10.0, -1.0, 0.0, 1.0, 9.0, 40.0, 1e4])
    with jax.enable_x64(True):
        z = pt.vector("z")
        function = to_jax([z], [make(0.0, 1.0, z)])
        value = lambda at: function(at[None])[0][0]  # noqa: E731
        parts = jax.jit(jax.vmap(lambda at: (value(at), jax.grad(value)(at), jax.hessian(value)(at))))(places)
        values, found, curvatures = map(np.asarray, parts)
    expected = special.log_ndtr(sign * places)
    slopes = sign * np.exp(-(places**2) / 2 - expected) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(values, expected, rtol=SINGLE_PRECISION, atol=SINGLE_PRECISION)
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=SINGLE_PRECISION)
    direct = -places * slopes - slopes**2  # which has no digits left far in the tail
    np.testing.assert_allclose(curvatures, np.where(sign * places < -1e3, -1.0, direct), rtol=1e-6, atol=1e-6)


def test_probabilities_between_bounds_have_slopes_everywhere():
    bounds = jnp.array([(1.0, -60.0), (60.0, -1.0), (101.0, 100.0), (-100.0, -101.0), (90.0, -90.0)])
    with jax.enable_x64(True):
        x, y = pt.vector("x"), pt.vector("y")
        function = to_jax([x, y], [log_diff_normal_cdf(0.0, 1.0, x, y)])
        value = lambda at: function(at[:1], at[1:])[0][0]  # noqa: E731
        slopes, curvatures = jax.jit(jax.vmap(lambda at: (jax.grad(value)(at), jax.hessian(value)(at))))(bounds)
    assert np.all(np.isfinite(curvatures))
    assert np.all(slopes[:, 0] >= 0)
    assert np.all(slopes[:, 1] <= 0)


def truncated_by_rows():
    kept = Y < BOUND
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        pm.Truncated("y", pm.Normal.dist(pm.Normal("mean"), scale), upper=BOUND[kept], observed=Y[kept])
    return model


def test_infinite_bounds_have_finite_slopes():
    """The chain rule alone would give zero times infinity."""
    model = truncated_by_rows()
    ours = cm.from_pymc(model)
    assert_totals_agree(model, ours)
    slopes = jax.grad(lambda at: jnp.sum(ours.log_likelihood(at, ours.data)))(positions_of(ours)[0])
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(slopes))


@pytest.mark.full
def test_rows_with_infinite_bounds_are_fitted():
    """They were refused as bad data. The slope of the censored regression is 1: within five posterior deviations."""
    with pm.Model() as model:
        MODELS["bounds of rows"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cm.fit(cm.from_pymc(model), coreset_size=60, draws=100, tune=50, random_seed=1, progressbar=False)
    draws = fit.posterior["slope"].to_numpy()
    assert abs(draws.mean() - 1.0) < 5 * draws.std()


def test_an_infinite_covariate_is_refused_by_name():
    x = np.where(np.arange(SIZE) == 7, np.inf, X)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mean") + pm.Normal("slope") * pm.Data("x", x), 1, observed=Y)
    with pytest.raises(cm.InputError, match=r"data\['x'\].*1 of 300 rows \(first at row 7\)"):
        cm.fit(cm.from_pymc(model), progressbar=False)
