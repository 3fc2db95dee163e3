"""Models from NumPyro's documentation and gallery, retyped, with their data as arguments.

Sources: logistic regression (the covtype benchmark and the logistic example), the divorce regression of the tutorial
"Bayesian Regression Using NumPyro", the varying intercepts and slopes of the tutorial on lung function, the
zero-inflated Poisson example on fishing, the Gaussian mixture of the examples written with ``MixtureSameFamily``, and
the partial pooling of the baseball example.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist


def logistic(data: jax.Array, labels: jax.Array | None = None) -> None:
    """The covtype benchmark."""
    coefficients = numpyro.sample("coefs", dist.Normal(0.0, 1.0).expand([data.shape[1]]).to_event(1))
    numpyro.sample("obs", dist.Bernoulli(logits=data @ coefficients), obs=labels)


def divorce(marriage: jax.Array, age: jax.Array, divorce: jax.Array | None = None) -> None:
    """Rates of divorce, with a deterministic for each row and one that is not."""
    a = numpyro.sample("a", dist.Normal(0.0, 0.2))
    slope_marriage = numpyro.sample("bM", dist.Normal(0.0, 0.5))
    slope_age = numpyro.sample("bA", dist.Normal(0.0, 0.5))
    sigma = numpyro.sample("sigma", dist.Exponential(1.0))
    mu = a + slope_marriage * marriage + slope_age * age
    numpyro.deterministic("difference", slope_marriage - slope_age)
    with numpyro.plate("data", marriage.shape[0]):
        numpyro.deterministic("mu", mu)
        numpyro.sample("obs", dist.Normal(mu, sigma), obs=divorce)


def lung(patient: jax.Array, week: jax.Array, fvc: jax.Array | None = None, num_patients: int = 1) -> None:
    """Varying intercepts and slopes."""
    mean_a = numpyro.sample("mean_a", dist.Normal(0.0, 2.0))
    scale_a = numpyro.sample("scale_a", dist.HalfNormal(2.0))
    mean_b = numpyro.sample("mean_b", dist.Normal(0.0, 1.0))
    scale_b = numpyro.sample("scale_b", dist.HalfNormal(1.0))
    with numpyro.plate("patients", num_patients):
        a = numpyro.sample("a", dist.Normal(mean_a, scale_a))
        b = numpyro.sample("b", dist.Normal(mean_b, scale_b))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("data", patient.shape[0]):
        numpyro.sample("obs", dist.Normal(a[patient] + b[patient] * week, sigma), obs=fvc)


def fishing(features: jax.Array, count: jax.Array | None = None) -> None:
    """A zero-inflated Poisson regression."""
    b_zero = numpyro.sample("b_zero", dist.Normal(0.0, 1.0).expand([features.shape[1]]).to_event(1))
    b_count = numpyro.sample("b_count", dist.Normal(0.0, 1.0).expand([features.shape[1]]).to_event(1))
    gate = jax.nn.sigmoid(features @ b_zero)
    with numpyro.plate("obs_plate", features.shape[0]):
        numpyro.sample("count", dist.ZeroInflatedPoisson(gate, rate=jnp.exp(features @ b_count)), obs=count)


def mixture(y: jax.Array, num_components: int = 2) -> None:
    """Labels summed out; ordered means, weights on the simplex."""
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(num_components, 2.0)))
    with numpyro.plate("components", num_components):
        scales = numpyro.sample("scales", dist.LogNormal(0.0, 0.5))
    gaps = numpyro.sample(
        "locs",
        dist.TransformedDistribution(
            dist.Normal(0.0, 3.0).expand([num_components]).to_event(1), dist.transforms.OrderedTransform()
        ),
    )
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("obs", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(gaps, scales)), obs=y)


def baseball(player: jax.Array, at_bats: jax.Array, hits: jax.Array, num_players: int = 1) -> None:
    """Partial pooling of batting averages."""
    m = numpyro.sample("m", dist.Uniform(0.0, 1.0))
    kappa = numpyro.sample("kappa", dist.Pareto(1.0, 1.5))
    with numpyro.plate("num_players", num_players):
        phi = numpyro.sample("phi", dist.Beta(m * kappa, (1.0 - m) * kappa))
    with numpyro.plate("data", hits.shape[0]):
        numpyro.sample("obs", dist.Binomial(at_bats, probs=phi[player]), obs=hits)


MODELS = {
    "logistic": logistic,
    "divorce": divorce,
    "lung": lung,
    "fishing": fishing,
    "mixture": mixture,
    "baseball": baseball,
}


class Case(NamedTuple):
    """A model, its rows, and the arguments that are no rows."""

    model: Any
    data: dict[str, np.ndarray]
    static: dict[str, Any]


def cases(size: int = 400, seed: int = 0) -> dict[str, Case]:
    """Each model with data drawn from it."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(size), rng.normal(size=(size, 2))])
    marriage, age = rng.normal(size=(2, size))
    groups = rng.integers(5, size=size)
    week = rng.normal(size=size)
    intercepts, slopes = rng.normal(1.0, 0.8, 5), rng.normal(-0.5, 0.4, 5)
    logits = x @ [0.3, -1.0, 0.5]
    is_zero = rng.uniform(size=size) < 1 / (1 + np.exp(-(x @ [-1.0, 0.5, 0.0])))
    counts = np.where(is_zero, 0, rng.poisson(np.exp(x @ [0.8, 0.3, -0.4])))
    at_bats = rng.integers(5, 40, size=size)
    return {
        "logistic": Case(logistic, {"data": x, "labels": (rng.uniform(size=size) < 1 / (1 + np.exp(-logits))) * 1}, {}),
        "divorce": Case(
            divorce,
            {"marriage": marriage, "age": age, "divorce": rng.normal(0.1 * marriage - 0.6 * age, 0.8)},
            {},
        ),
        "lung": Case(
            lung,
            {"patient": groups, "week": week, "fvc": rng.normal(intercepts[groups] + slopes[groups] * week, 0.6)},
            {"num_patients": 5},
        ),
        "fishing": Case(fishing, {"features": x, "count": counts}, {}),
        "mixture": Case(
            mixture,
            {"y": np.where(rng.uniform(size=size) < 0.4, rng.normal(-2, 0.8, size), rng.normal(2, 1.2, size))},
            {},
        ),
        "baseball": Case(
            baseball,
            {"player": groups, "at_bats": at_bats, "hits": rng.binomial(at_bats, (0.2 + 0.05 * np.arange(5))[groups])},
            {"num_players": 5},
        ),
    }
