"""NumPyro models with a discrete latent in each row, which is summed out, and with rows that a mask picks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import potential_energy

import coreset_mcmc as cm
from coreset_mcmc.models.independence import random_positions

pytestmark = pytest.mark.usefixtures("double")

SIZE = 40
RNG = np.random.default_rng(5)
X = RNG.normal(size=SIZE)
Y = RNG.normal(np.where(RNG.uniform(size=SIZE) < 0.3, -1.0, 2.0), 0.7)
CENSORED = Y > 1.8
TIME = np.exp(np.minimum(Y, 1.8))


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def mixture(x, y=None):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    means = numpyro.sample("means", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        label = numpyro.sample("label", dist.Categorical(weights), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(means[label] + slope * x, 1.0), obs=y)


def two_labels(x, y=None):
    """One depends on the other, and there are two responses; NumPyro sums them out without being told."""
    share = numpyro.sample("share", dist.Beta(1.0, 1.0))
    table = numpyro.sample("table", dist.Dirichlet(jnp.ones(2)).expand([2]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        one = numpyro.sample("one", dist.Bernoulli(share))
        two = numpyro.sample("two", dist.Categorical(table[one]))
        numpyro.sample("y", dist.Normal(1.0 * one - two, 1.0), obs=y)
        numpyro.sample("x", dist.Normal(1.0 * two, 2.0), obs=x)


def numpyros(model, data, position):
    """NumPyro's own log-density, on the unconstrained scale, with its enumeration."""
    pytest.importorskip("funsor", reason="NumPyro enumerates with funsor")
    from numpyro.contrib.funsor import config_enumerate, enum
    from numpyro.contrib.funsor.infer_util import log_density

    trace = handlers.trace(handlers.seed(model, 0)).get_trace(**data)
    transforms = {name: biject_to(trace[name]["fn"].support) for name in position}
    values = {name: transforms[name](leaf) for name, leaf in position.items()}
    jacobians = sum(
        jnp.sum(transforms[name].log_abs_det_jacobian(leaf, values[name])) for name, leaf in position.items()
    )
    total, _ = log_density(enum(config_enumerate(model), -2), (), data, values)
    return float(total + jacobians)


def positions_of(model):
    many = random_positions(model.initial_position(jax.random.key(0)), 2)
    return [jax.tree.map(lambda leaf, place=place: leaf[place], many) for place in range(2)]


def total(model, position):
    return float(model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data)))


@pytest.mark.full
@pytest.mark.parametrize("model", [mixture, two_labels])
def test_labels_are_summed_out_as_numpyro_does(model):
    data = {"x": X, "y": Y}
    ours = cm.from_numpyro(model).bind(data)
    assert not {"label", "one", "two"} & set(ours.initial_position(jax.random.key(0)))
    for position in positions_of(ours):
        expected = numpyros(model, jax.tree.map(jnp.asarray, data), position)
        np.testing.assert_allclose(total(ours, position), expected, rtol=1e-8)


@pytest.mark.full
def test_new_responses_have_new_labels():
    """Means of the mixture: five standard errors of 40 000 draws; false alarms in fewer than 1 of 10^5 runs."""
    ours = cm.from_numpyro(mixture).bind({"x": X, "y": Y})
    position = positions_of(ours)[0]
    shown = ours.constrain(position)
    keys = jax.random.split(jax.random.key(1), 1_000)
    drawn = jax.vmap(lambda key: ours.predictive(key, position, {"x": X, "y": Y})["y"])(keys)
    expected = shown["weights"] @ shown["means"] + shown["slope"] * X.mean()
    assert abs(float(drawn.mean() - expected)) < 5 * float(drawn.std()) / np.sqrt(drawn.size)


def masked(time, censored, x):
    shape = numpyro.sample("shape", dist.LogNormal(0.0, 0.5))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    scale = jnp.exp(slope * x)
    numpyro.sample("event", dist.Weibull(scale[~censored], shape), obs=time[~censored])
    numpyro.factor("survival", -((time[censored] / scale[censored]) ** shape))


def masked_by_numbers(time, censored, x):
    return masked(time, censored == 1, x)


@pytest.mark.full
@pytest.mark.parametrize(("model", "mask"), [(masked, CENSORED), (masked_by_numbers, 1 * CENSORED)])
def test_rows_that_a_mask_picks(model, mask):
    data = {"time": TIME, "censored": mask, "x": X}
    ours = cm.from_numpyro(model).bind(data)
    for position in positions_of(ours):
        theirs = -float(potential_energy(model, (), data, position))
        np.testing.assert_allclose(total(ours, position), theirs, rtol=1e-8)
    values = np.asarray(ours.log_likelihood(position, data))
    places = np.array([3, 1, 30])
    few = jax.tree.map(lambda leaf: leaf[places], data)
    np.testing.assert_allclose(ours.log_likelihood(position, few), values[places], rtol=1e-12)


def counted(time, censored, x):
    """The number of censored rows matters for all."""
    numpyro.factor("all", numpyro.sample("rate", dist.Normal()) * time * censored[censored].sum())
    del x


def in_plates(time, censored, x):
    rate = numpyro.sample("rate", dist.LogNormal())
    with numpyro.plate("events", int((~censored).sum())):
        numpyro.sample("event", dist.Exponential(rate), obs=time[~censored])
    del x


def by_threshold(time, censored, x):
    numpyro.factor("late", numpyro.sample("rate", dist.Normal()) * time[time > 1.0])
    del x, censored


def shared_label(time, censored, x):
    label = numpyro.sample("label", dist.Bernoulli(0.3))
    numpyro.sample("y", dist.Normal(1.0 * label, 1.0), obs=x)
    del time, censored


def table_of_labels(time, censored, x):
    share = numpyro.sample("share", dist.Beta(1.0, 1.0))
    with numpyro.plate("items", 2, dim=-2), numpyro.plate("rows", x.shape[0]):
        label = numpyro.sample("label", dist.Bernoulli(share))
        numpyro.sample("y", dist.Normal(1.0 * label, 1.0), obs=jnp.stack([x, time]))
    del censored


@pytest.mark.parametrize(
    ("model", "words"),
    [
        pytest.param(counted, "changes with the number or the values of the other rows", marks=pytest.mark.full),
        pytest.param(in_plates, "(?s)int, len.*static", marks=pytest.mark.full),
        (by_threshold, r"(?s)picks rows by their values, as in mu\[~censored\].*handlers.mask"),
        (shared_label, "(?s)all rows share.*draw it in the plate of rows"),
        (table_of_labels, "several discrete latents in each"),
    ],
)
def test_what_cannot_be_split_is_refused_for_the_true_reason(model, words):
    with pytest.raises(cm.InputError, match=words):
        cm.from_numpyro(model).bind({"time": TIME, "censored": CENSORED, "x": X})
