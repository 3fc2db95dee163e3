"""The same posteriors as NumPyro models (extra ``numpyro``); every site is unconstrained, so log-densities agree.

``subsample`` asks for that many rows at a time, which HMC with energy-conserving subsampling wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc_benchmarks.speed.sizes import NUM_GROUPS, NUM_PLAYERS

Data = dict[str, Any]


def _rows(data: Data, subsample: int | None) -> tuple[Any, Callable[[str], Any]]:
    """The plate of rows, and how to take a column within it."""
    import numpyro  # noqa: PLC0415 - an optional extra

    size = len(next(iter(data.values())))
    plate = numpyro.plate("rows", size, subsample_size=subsample)

    def column(name: str) -> Any:
        values = data[name]
        return values if subsample is None else numpyro.subsample(values, event_dim=jnp.ndim(values) - 1)

    return plate, column


def _coefficients(prior: Any, count: int) -> Any:
    import numpyro  # noqa: PLC0415

    return numpyro.sample("beta", prior.expand([count]).to_event(1))


def _regression(data: Data, subsample: int | None, prior: Any, outcome: Callable[[Any], Any]) -> None:
    """y ~ outcome(beta_0 + x'beta)."""
    import numpyro  # noqa: PLC0415

    beta = _coefficients(prior, data["x"].shape[1] + 1)
    plate, column = _rows(data, subsample)
    with plate:
        predicted = beta[0] + column("x") @ beta[1:]
        numpyro.sample("y", outcome(predicted), obs=column("y"))


def linear(data: Data, subsample: int | None = None) -> None:
    """Departure delays: coefficients and log sigma^2 standard normal."""
    import numpyro  # noqa: PLC0415
    from numpyro import distributions as dist  # noqa: PLC0415

    log_variance = numpyro.sample("log_variance", dist.Normal())
    _regression(data, subsample, dist.Normal(), lambda mean: dist.Normal(mean, jnp.exp(0.5 * log_variance)))


def logistic(data: Data, subsample: int | None = None) -> None:
    """Cauchy(0, 1) coefficients."""
    from numpyro import distributions as dist  # noqa: PLC0415

    _regression(data, subsample, dist.Cauchy(), dist.BernoulliLogits)


def poisson(data: Data, subsample: int | None = None) -> None:
    """Standard normal coefficients, softplus rate."""
    from numpyro import distributions as dist  # noqa: PLC0415

    _regression(data, subsample, dist.Normal(), lambda predicted: dist.Poisson(jax.nn.softplus(predicted)))


def mixture(data: Data, subsample: int | None = None) -> None:
    """Two Gaussians, labels left free."""
    import numpyro  # noqa: PLC0415
    from numpyro import distributions as dist  # noqa: PLC0415

    means = numpyro.sample("means", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
    log_scales = numpyro.sample("log_scales", dist.Normal().expand([2]).to_event(1))
    logits = numpyro.sample("logits", dist.Normal().expand([2]).to_event(1))
    plate, column = _rows(data, subsample)
    with plate:
        components = dist.Normal(means, jnp.exp(log_scales))
        numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(logits=logits), components), obs=column("y"))


def unidentified(data: Data, subsample: int | None = None) -> None:
    """A regression on the product of two factors."""
    import numpyro  # noqa: PLC0415
    from numpyro import distributions as dist  # noqa: PLC0415

    factors = numpyro.sample("factors", dist.Normal().expand([2]).to_event(1))
    slope = numpyro.sample("slope", dist.Normal())
    plate, column = _rows(data, subsample)
    with plate:
        x = column("x")
        predicted = factors[0] * factors[1] * x[..., 0] + slope * x[..., 1]
        numpyro.sample("y", dist.Normal(predicted, 1.0), obs=column("y"))


def hierarchical(data: Data, subsample: int | None = None) -> None:
    """Effects of groups around a common mean, centred parametrisation as in our model."""
    import numpyro  # noqa: PLC0415
    from numpyro import distributions as dist  # noqa: PLC0415

    beta = _coefficients(dist.Normal(), data["x"].shape[1])
    mean = numpyro.sample("mean", dist.Normal())
    log_scale = numpyro.sample("log_scale", dist.Normal())
    effects = numpyro.sample("effects", dist.Normal(mean, jnp.exp(log_scale)).expand([NUM_GROUPS]).to_event(1))
    plate, column = _rows(data, subsample)
    with plate:
        logits = column("x") @ beta + effects[column("group")]
        numpyro.sample("y", dist.BernoulliLogits(logits), obs=column("y"))


def bradley_terry(data: Data, subsample: int | None = None) -> None:
    """Standard normal abilities."""
    import numpyro  # noqa: PLC0415
    from numpyro import distributions as dist  # noqa: PLC0415

    ability = numpyro.sample("ability", dist.Normal().expand([NUM_PLAYERS]).to_event(1))
    plate, column = _rows(data, subsample)
    with plate:
        logits = ability[column("winner")] - ability[column("loser")]
        numpyro.sample("won", dist.BernoulliLogits(logits), obs=jnp.ones(logits.shape))


PEERS: dict[str, Callable[..., None]] = {
    "linear": linear,
    "logistic": logistic,
    "poisson": poisson,
    "mixture": mixture,
    "unidentified": unidentified,
    "hierarchical": hierarchical,
    "bradley-terry": bradley_terry,
}
