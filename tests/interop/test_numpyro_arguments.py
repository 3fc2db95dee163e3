"""Ways of calling a NumPyro model: the number of rows as an argument, partial applications, scopes; and refusals."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

import coreset_mcmc as cm

numpyro = pytest.importorskip("numpyro", reason="needs NumPyro: pip install coreset-mcmc[numpyro]")
import numpyro.distributions as dist  # noqa: E402
from numpyro import handlers  # noqa: E402

SIZE = 60
X = np.random.default_rng(0).normal(size=SIZE)
ROWS = {"x": X, "y": X + np.random.default_rng(1).normal(size=SIZE)}


def regression(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)


def rows_alone(model, name="slope"):
    """Log-likelihoods of the first four rows, alone."""
    few = {key: value[:4] for key, value in ROWS.items()}
    with jax.enable_x64(True):
        return np.asarray(model.log_likelihood({name: np.array(0.3)}, few))


@pytest.fixture(scope="module")
def expected():
    return rows_alone(cm.from_numpyro(regression).bind(ROWS))


def test_an_argument_that_is_the_number_of_rows_follows_them(expected):
    def model(num_observations, x, y=None):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        with numpyro.plate("obs", num_observations):
            numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)

    bound = cm.from_numpyro(model, static={"num_observations": SIZE}).bind(ROWS)
    np.testing.assert_allclose(rows_alone(bound), expected)


def test_an_argument_that_happens_to_be_the_number_of_rows_stays():
    def model(x, y=None, freedom=1):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.StudentT(freedom, slope * x, 1), obs=y)

    bound = cm.from_numpyro(model, static={"freedom": SIZE}).bind(ROWS)
    fixed = cm.from_numpyro(lambda x, y: model(x, y, freedom=SIZE)).bind(ROWS)
    np.testing.assert_allclose(rows_alone(bound), rows_alone(fixed))


def test_partial_applications_by_place_and_by_name(expected):
    def model(scale, x, y=None, shift=0.0):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(slope * x + shift, scale), obs=y)

    for wrapped in (partial(model, 1.0), partial(partial(model, 1.0), shift=0.0), partial(model, scale=1.0)):
        np.testing.assert_allclose(rows_alone(cm.from_numpyro(wrapped).bind(ROWS)), expected)


def test_slashes_of_scopes_are_dots_in_results(expected):
    def model(x, y=None):
        with handlers.scope(prefix="inner"):
            slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)

    bound = cm.from_numpyro(model).bind(ROWS)
    with jax.enable_x64(True):
        assert set(bound.constrain({"inner.slope": np.array(0.3)})) == {"inner.slope"}
        for name in ("inner.slope", "inner/slope"):
            moved = bound.unconstrain({name: 0.7}, {"inner.slope": np.array(0.3)})
            np.testing.assert_allclose(moved["inner.slope"], 0.7)
    np.testing.assert_allclose(rows_alone(bound, "inner.slope"), expected)


def test_names_that_become_the_same_are_refused():
    def model(x, y=None):
        one, other = numpyro.sample("a/b", dist.Normal(0, 1)), numpyro.sample("a.b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal((one + other) * x, 1), obs=y)

    with pytest.raises(cm.InputError, match=r"results would call a\.b"):
        cm.from_numpyro(model).bind(ROWS)


def test_an_autoregression_is_told_what_it_is():
    def model(y):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("later", dist.Normal(slope * y[:-1], 1), obs=y[1:])

    with pytest.raises(cm.InputError, match=r"(?s)other numbers of values than the 60 rows.*59.*autoregression"):
        cm.from_numpyro(model).bind({"y": X})
