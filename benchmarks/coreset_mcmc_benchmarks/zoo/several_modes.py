"""Several modes: clusters under heavy tails, frequencies, signs, narrow beside broad, exchanged labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator
from coreset_mcmc_benchmarks.zoo.grids import Box, grid_moments

FAMILY = "several modes"


def normal_prior(scale: float, mean: float = 0.0) -> Callable[[jax.Array], jax.Array]:
    """Independent normal priors of one scale."""
    return lambda position: -0.5 * jnp.sum(((position - mean) / scale) ** 2)


def location(row: Callable[[jax.Array], jax.Array], name: str, start: float = 0.0, scale: float = 100.0) -> cm.Model:
    """A location with some log-density of the residuals."""
    return cm.Model(
        normal_prior(scale),
        lambda position, rows: row(rows["y"] - position[0]),
        initial_position=np.array([start]),
        name=name,
    )


CAUCHY = location(lambda residual: -jnp.log1p(residual**2), "Cauchy location")
NARROW_IN_BROAD = location(
    lambda residual: jnp.logaddexp(-0.5 * (residual / 20) ** 2, 2.0 - 0.5 * (residual / 0.1) ** 2), "narrow and broad"
)
FREQUENCY = cm.Model(
    normal_prior(5.0, 3.0),
    lambda position, rows: -0.5 * ((rows["y"] - jnp.sin(position[0] * rows["t"])) / rows["noise"]) ** 2,
    initial_position=np.array([1.0]),
    name="frequency",
)
SQUARE = cm.Model(
    lambda position: -0.5 * jnp.sum((position - 0.5) ** 2) / 4.0,
    lambda position, rows: -0.5 * (rows["y"] - position[0] ** 2) ** 2,
    initial_position=np.array([0.5]),
    name="square",
)
MAGNITUDE = cm.Model(
    normal_prior(3.0),
    lambda position, rows: -0.5 * (rows["y"] - jnp.abs(position[0])) ** 2,
    initial_position=np.array([1.0]),
    name="magnitude",
)


def two_components(share: float) -> cm.Model:
    """Means of a mixture with known shares and unit scales."""

    def log_likelihood(position: jax.Array, rows: Any) -> jax.Array:
        first, second = (-0.5 * (rows["y"] - position[number]) ** 2 for number in (0, 1))
        return jnp.logaddexp(jnp.log(share) + first, jnp.log1p(-share) + second)

    return cm.Model(normal_prior(5.0), log_likelihood, initial_position=np.array([-1.0, 1.0]), name="two components")


EVEN, UNEVEN = two_components(0.5), two_components(0.6)


def clusters(name: str, places: Sequence[float], counts: Sequence[int], model: cm.Model, start: float = 0.0) -> Problem:
    """Clusters of rows around places; one model, one number of rows."""
    rng = generator(name)
    y = np.concatenate([rng.normal(place, 1.0, count) for place, count in zip(places, counts, strict=True)])
    data = {"y": y}
    return Problem(model, data, grid_moments(model, data, [(-40.0, 40.0)]), (SIZE,), initvals=np.array([start]))


def mirrored(name: str) -> Problem:
    """Two clusters of mirrored rows: two modes of the same mass."""
    half = generator(name).normal(6.0, 1.0, 8)
    data = {"y": np.concatenate([half, -half])}
    return Problem(CAUCHY, data, grid_moments(CAUCHY, data, [(-40.0, 40.0)]), (16,))


def narrow(name: str, share: float) -> Problem:
    """A tight cluster far from where most rows are."""
    rng = generator(name)
    tight = int(share * ROWS)
    data = {"y": np.concatenate([rng.normal(0.0, 5.0, ROWS - tight), rng.normal(12.0, 0.1, tight)])}
    truth = grid_moments(NARROW_IN_BROAD, data, [(-40.0, 40.0)])
    return Problem(NARROW_IN_BROAD, data, truth, (SIZE,))


def frequency(name: str, true: float, noise: float, count: int = ROWS) -> Problem:
    """A sine with many local modes."""
    rng = generator(name)
    t = np.sort(rng.uniform(0.0, 20.0, count))
    data = {"t": t, "y": np.sin(true * t) + rng.normal(0.0, noise, count), "noise": np.full(count, noise)}
    truth = grid_moments(FREQUENCY, data, [(-25.0, 25.0)])
    return Problem(FREQUENCY, data, truth, (min(SIZE, count),))


def sign(name: str, model: cm.Model, level: float, count: int) -> Problem:
    """The data know a magnitude, the prior the sign if anyone; if nobody does, the magnitude is what is compared."""
    data = {"y": generator(name).normal(level, 1.0, count)}
    if model is MAGNITUDE:
        truth = grid_moments(model, data, [(-8.0, 8.0)], shown=np.abs)
        return Problem(model, data, truth, (min(SIZE, count),), fold=without_signs)
    return Problem(model, data, grid_moments(model, data, [(-8.0, 8.0)]), (min(SIZE, count),))


def without_signs(draws: Draws) -> Draws:
    """What does not change when the sign does."""
    return {name: np.abs(values) for name, values in draws.items()}


def ascending(draws: Draws) -> Draws:
    """What does not change when labels are exchanged."""
    return {name: np.sort(values, axis=-1) for name, values in draws.items()}


def labels(name: str, model: cm.Model, share: float, gap: float, *, is_symmetric: bool) -> Problem:
    """Two components that can be exchanged, or nearly so."""
    rng = generator(name)
    data = {"y": rng.normal(np.where(rng.random(ROWS) < share, -gap, gap), 1.0)}
    box: Box = [(-3.0, 3.0)] * 2
    if is_symmetric:
        truth = grid_moments(model, data, box, shown=lambda points: np.sort(points, axis=-1))
        return Problem(model, data, truth, (SIZE,), fold=ascending)
    return Problem(model, data, grid_moments(model, data, box), (SIZE,))


def entries() -> Iterator[Entry]:
    """All problems of this family."""
    makes: dict[str, Callable[[str], Problem]] = {
        "cauchy-clusters-60-40": partial(clusters, places=(10, -10), counts=(1200, 800), model=CAUCHY),
        "cauchy-start-in-the-minor-cluster": partial(
            clusters, places=(10, -10), counts=(1800, 200), model=CAUCHY, start=-10.0
        ),
        "cauchy-three-clusters": partial(
            clusters, places=(-20, 0, 25), counts=(600, 500, 900), model=CAUCHY, start=-1.0
        ),
        "cauchy-mirrored": mirrored,
        "narrow-beside-broad-30": partial(narrow, share=0.3),
        "narrow-beside-broad-10": partial(narrow, share=0.1),
        "frequency-strong": partial(frequency, true=4.0, noise=0.5),
        "frequency-weak": partial(frequency, true=5.0, noise=3.0),
        "frequency-few-rows": partial(frequency, true=2.5, noise=0.7, count=40),
        "frequency-ambiguous": partial(frequency, true=2.5, noise=2.0, count=40),
        "sign-known-by-the-prior-alone": partial(sign, model=SQUARE, level=1.0, count=ROWS),
        "sign-few-rows": partial(sign, model=SQUARE, level=0.8, count=10),
        "sign-unknown": partial(sign, model=MAGNITUDE, level=2.0, count=ROWS),
        "labels-exchanged": partial(labels, model=EVEN, share=0.5, gap=2.0, is_symmetric=True),
        "labels-nearly-exchanged": partial(labels, model=UNEVEN, share=0.6, gap=2.0, is_symmetric=False),
        "labels-merged": partial(labels, model=EVEN, share=0.5, gap=0.3, is_symmetric=True),
    }
    for name, make in makes.items():
        yield Entry(name, FAMILY, partial(make, name))
