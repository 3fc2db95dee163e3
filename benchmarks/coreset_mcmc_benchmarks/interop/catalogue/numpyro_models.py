"""Models of NumPyro: those of its documentation, and one for each way of observing rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam

from coreset_mcmc_benchmarks.interop.catalogue.entry import Register
from coreset_mcmc_benchmarks.interop.models.numpyro_gallery import MODELS, Case, cases

NUMPYRO = Register("NumPyro")
GLM = ("logistic", "divorce")


def _gallery(name: str, size: int) -> Case:
    return cases(size)[name]


for _name in MODELS:
    NUMPYRO.add(f"gallery: {_name}", glm=_name in GLM)(partial(_gallery, _name))

Rows = Callable[[np.random.Generator, int], np.ndarray]
Response = Callable[[jax.Array], Any]


def real(rng: np.random.Generator, size: int) -> np.ndarray:
    """Any numbers."""
    return rng.normal(0.5, 1.2, size=size)


def positive(rng: np.random.Generator, size: int) -> np.ndarray:
    """Positive numbers."""
    return rng.gamma(2.0, 1.0, size=size)


def share(rng: np.random.Generator, size: int) -> np.ndarray:
    """Between zero and one."""
    return rng.beta(2.0, 3.0, size=size)


def count(rng: np.random.Generator, size: int) -> np.ndarray:
    """Counts with many zeros."""
    return rng.poisson(2.0, size=size) * rng.integers(2, size=size)


def up_to(most: int) -> Rows:
    """Whole numbers."""
    return lambda rng, size: rng.integers(most + 1, size=size)


def scale() -> Any:
    """A positive parameter."""
    return numpyro.sample("scale", dist.HalfNormal(2.0))


def observing(name: str, rows: Rows, response: Response, *, glm: bool = False) -> None:
    """Register a regression on one covariate with this distribution of the response."""

    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        line = numpyro.sample("intercept", dist.Normal(0.0, 1.0)) + numpyro.sample("slope", dist.Normal(0.0, 1.0)) * x
        distribution = response(line)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", distribution, obs=y)

    def make(size: int) -> Case:
        rng = np.random.default_rng(len(name))
        return Case(model, {"x": rng.normal(size=size), "y": rows(rng, size)}, {})

    NUMPYRO.add(name, glm=glm)(make)


def cuts() -> Any:
    """Two cutpoints in order."""
    return numpyro.sample("cuts", dist.TransformedDistribution(dist.Normal(0.0, 2.0).expand([2]).to_event(1), ORDERED))


ORDERED = dist.transforms.OrderedTransform()

observing("Normal", real, lambda line: dist.Normal(line, scale()), glm=True)
observing("StudentT", real, lambda line: dist.StudentT(4.0, line, scale()), glm=True)
observing("Laplace", real, lambda line: dist.Laplace(line, scale()), glm=True)
observing("Cauchy", real, lambda line: dist.Cauchy(line, scale()), glm=True)
observing("Logistic", real, lambda line: dist.Logistic(line, scale()), glm=True)
observing("Gumbel", real, lambda line: dist.Gumbel(line, scale()), glm=True)
observing("AsymmetricLaplace", real, lambda line: dist.AsymmetricLaplace(line, scale(), 0.8))
observing("SoftLaplace", real, lambda line: dist.SoftLaplace(line, scale()))
observing("LogNormal", positive, lambda line: dist.LogNormal(line, scale()), glm=True)
observing("Gamma", positive, lambda line: dist.Gamma(2.0, jnp.exp(line)), glm=True)
observing("InverseGamma", positive, lambda line: dist.InverseGamma(3.0, jnp.exp(line)))
observing("Weibull", positive, lambda line: dist.Weibull(jnp.exp(line), 1.0 + scale()))
observing("HalfNormal", positive, lambda line: dist.HalfNormal(jnp.exp(line)))
observing("HalfCauchy", positive, lambda line: dist.HalfCauchy(jnp.exp(line)))
observing("Gompertz", positive, lambda line: dist.Gompertz(1.0, jnp.exp(line)))
observing("TruncatedNormal", positive, lambda line: dist.TruncatedNormal(line, 1.0 + scale(), low=0.0))
observing("Beta", share, lambda line: dist.BetaProportion(jax.nn.sigmoid(line), 2.0 + scale()), glm=True)
observing("Kumaraswamy", share, lambda line: dist.Kumaraswamy(1.0 + scale(), jnp.exp(line)))
observing("VonMises", lambda rng, size: rng.vonmises(0.3, 2.0, size=size), lambda line: dist.VonMises(line, scale()))
observing("Bernoulli", up_to(1), lambda line: dist.Bernoulli(logits=line), glm=True)
observing("Binomial", up_to(8), lambda line: dist.Binomial(10, logits=line), glm=True)
observing("BetaBinomial", up_to(8), lambda line: dist.BetaBinomial(jnp.exp(line), 2.0, 10))
observing("Poisson", count, lambda line: dist.Poisson(jnp.exp(line)), glm=True)
observing("NegativeBinomial", count, lambda line: dist.NegativeBinomial2(jnp.exp(line), scale()), glm=True)
observing("Geometric", count, lambda line: dist.Geometric(logits=line), glm=True)
observing("ZeroInflatedPoisson", count, lambda line: dist.ZeroInflatedPoisson(0.3, jnp.exp(line)))
observing(
    "ZeroInflatedNegativeBinomial",
    count,
    lambda line: dist.ZeroInflatedNegativeBinomial2(jnp.exp(line), scale(), gate=0.3),
)
observing("OrderedLogistic", up_to(2), lambda line: dist.OrderedLogistic(line, cuts()), glm=True)
observing(
    "Categorical", up_to(2), lambda line: dist.Categorical(logits=jnp.stack([line, -line, 0 * line], axis=-1)), glm=True
)
observing(
    "MixtureGeneral",
    real,
    lambda line: dist.MixtureGeneral(
        dist.Categorical(jnp.array([0.3, 0.7])), [dist.Normal(line, 1.0), dist.StudentT(4.0, 0.0, scale())]
    ),
)


def rows_of(size: int) -> dict[str, np.ndarray]:
    """A covariate, groups, a real response and three of them."""
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=size), rng.integers(6, size=size)
    effect = np.linspace(-1.0, 1.0, 6)
    return {"x": x, "group": group, "y": effect[group] + 0.5 * x + rng.normal(scale=0.7, size=size)}


@NUMPYRO.add("groups, not centred")
def _reparametrised(size: int) -> Case:
    def model(x: jax.Array, group: jax.Array, y: jax.Array | None = None, num_groups: int = 6) -> None:
        mean, spread = numpyro.sample("mean", dist.Normal(0.0, 1.0)), numpyro.sample("spread", dist.HalfNormal(1.0))
        with numpyro.plate("groups", num_groups):
            effect = numpyro.sample("effect", dist.Normal(mean, spread))
        numpyro.sample("y", dist.Normal(effect[group] + x, scale()), obs=y)

    return Case(handlers.reparam(model, config={"effect": LocScaleReparam(0.0)}), rows_of(size), {"num_groups": 6})


@NUMPYRO.add("vectors with an LKJ prior")
def _vectors(size: int) -> Case:
    def model(y: jax.Array) -> None:
        corr = numpyro.sample("corr", dist.LKJCholesky(3, 2.0))
        deviations = numpyro.sample("deviations", dist.HalfNormal(1.0).expand([3]).to_event(1))
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        with numpyro.plate("data", y.shape[0]):
            numpyro.sample("y", dist.MultivariateNormal(mean, scale_tril=deviations[:, None] * corr), obs=y)

    return Case(model, {"y": np.random.default_rng(1).normal(size=(size, 3))}, {})


@NUMPYRO.add("horseshoe")
def _horseshoe(size: int) -> Case:
    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        overall = numpyro.sample("overall", dist.HalfCauchy(1.0))
        local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([x.shape[1]]).to_event(1))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1)) * local * overall
        numpyro.sample("y", dist.Normal(x @ b, scale()), obs=y)

    rng = np.random.default_rng(2)
    x = rng.normal(size=(size, 5))
    return Case(model, {"x": x, "y": x[:, 0] + rng.normal(size=size)}, {})


@NUMPYRO.add("a small neural network")
def _network(size: int) -> Case:
    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        inner = numpyro.sample("inner", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        outer = numpyro.sample("outer", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        numpyro.sample("y", dist.Normal(jnp.tanh(x[:, None] * inner) @ outer, scale()), obs=y)

    rows = rows_of(size)
    return Case(model, {"x": rows["x"], "y": rows["y"]}, {})


@NUMPYRO.add("censored by a factor")
def _censored(size: int) -> Case:
    def model(time: jax.Array, is_event: jax.Array) -> None:
        rate = numpyro.sample("rate", dist.LogNormal(0.0, 1.0))
        with numpyro.plate("data", time.shape[0]):
            numpyro.factor("survival", jnp.where(is_event, jnp.log(rate), 0.0) - rate * time)

    rng = np.random.default_rng(3)
    return Case(model, {"time": rng.exponential(size=size), "is_event": rng.integers(2, size=size)}, {})


@NUMPYRO.add("masked rows")
def _masked(size: int) -> Case:
    def model(y: jax.Array, is_there: jax.Array) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", y.shape[0]), handlers.mask(mask=is_there):
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    rng = np.random.default_rng(4)
    return Case(model, {"y": rng.normal(size=size), "is_there": rng.integers(2, size=size).astype(bool)}, {})


@NUMPYRO.add("a random walk over rows", refused="for all rows together")
def _walk(size: int) -> Case:
    def model(y: jax.Array) -> None:
        numpyro.sample("y", dist.GaussianRandomWalk(scale(), num_steps=y.shape[0]), obs=y)

    return Case(model, {"y": np.cumsum(np.random.default_rng(5).normal(size=size))}, {})


@NUMPYRO.add("a latent for each row", refused="a value for each row")
def _latents(size: int) -> Case:
    def model(y: jax.Array) -> None:
        with numpyro.plate("data", y.shape[0]):
            rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    return Case(model, {"y": count(np.random.default_rng(6), size)}, {})


@NUMPYRO.add("labels of rows, enumerated")
def _labels(size: int) -> Case:
    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
        means = numpyro.sample("means", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]):
            label = numpyro.sample("label", dist.Categorical(weights), infer={"enumerate": "parallel"})
            numpyro.sample("y", dist.Normal(means[label] + slope * x, 1.0), obs=y)

    rows = rows_of(size)
    return Case(model, {"x": rows["x"], "y": rows["y"]}, {})


@NUMPYRO.add("two labels, one given the other")
def _two_labels(size: int) -> Case:
    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        table = numpyro.sample("table", dist.Dirichlet(jnp.ones(2)).expand([2]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            one = numpyro.sample("one", dist.Bernoulli(share))
            two = numpyro.sample("two", dist.Categorical(table[one]))
            numpyro.sample("y", dist.Normal(1.0 * one - two + x, 1.0), obs=y)

    rows = rows_of(size)
    return Case(model, {"x": rows["x"], "y": rows["y"]}, {})


@NUMPYRO.add("a label that all rows share", refused="that all rows share")
def _shared_label(size: int) -> Case:
    def model(y: jax.Array) -> None:
        label = numpyro.sample("label", dist.Bernoulli(0.3))
        with numpyro.plate("data", y.shape[0]):
            numpyro.sample("y", dist.Normal(1.0 * label, numpyro.sample("scale", dist.HalfNormal(1.0))), obs=y)

    return Case(model, {"y": rows_of(size)["y"]}, {})


def _times(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    x = rng.normal(size=size)
    times = np.exp(0.5 * x) * rng.weibull(1.3, size=size)
    return {"x": x, "time": np.minimum(times, 1.5), "censored": times > 1.5}


@NUMPYRO.add("rows that a mask picks")
def _picked(size: int) -> Case:
    def model(x: jax.Array, time: jax.Array, censored: jax.Array) -> None:
        shape, slope = numpyro.sample("shape", dist.LogNormal(0.0, 0.5)), numpyro.sample("slope", dist.Normal())
        deviation = jnp.exp(slope * x)
        numpyro.sample("event", dist.Weibull(deviation[~censored], shape), obs=time[~censored])
        numpyro.factor("survival", -((time[censored] / deviation[censored]) ** shape))

    return Case(model, _times(size), {})


@NUMPYRO.add("rows that a threshold picks", refused="NonConcreteBooleanIndexError")
def _threshold(size: int) -> Case:
    def model(x: jax.Array, time: jax.Array) -> None:
        slope = numpyro.sample("slope", dist.Normal())
        numpyro.sample("late", dist.Exponential(jnp.exp(slope * x[time > 1.0])), obs=time[time > 1.0])

    rows = _times(size)
    return Case(model, {"x": rows["x"], "time": rows["time"]}, {})
