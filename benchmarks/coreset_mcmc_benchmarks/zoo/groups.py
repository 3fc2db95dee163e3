"""Groups, funnels and the horseshoe: scales of scales, whose truth is a low-dimensional integral of closed forms.

Given the mean and the scale of the groups their effects are normal and independent; given the global scale of a
horseshoe and a design of orthogonal columns the coefficients are independent, each an integral over its own scale. So
the grid is over one or two numbers and everything else is algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.linalg import hadamard

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.verdicts.problems import Moments, Problem
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator

GROUPS, MEAN_SCALE, LOG_SCALE = 8, 5.0, 1.0
"""Effects of groups ~ N(mean, exp(log_scale)), mean ~ N(0, 5), log_scale ~ N(0, 1)."""
COLUMNS = 8


def effects_prior(position: Any) -> Any:
    """Centred, so that it is a funnel."""
    standard = (position["effects"] - position["mean"]) * jnp.exp(-position["log_scale"])
    return (
        -0.5 * jnp.sum(standard**2)
        - GROUPS * position["log_scale"]
        - 0.5 * (position["mean"] / MEAN_SCALE) ** 2
        - 0.5 * (position["log_scale"] / LOG_SCALE) ** 2
    )


EFFECTS = cm.Model(
    effects_prior,
    lambda position, rows: -0.5 * ((rows["y"] - position["effects"][rows["group"]]) / rows["noise"]) ** 2,
    initial_position={"effects": np.zeros(GROUPS), "log_scale": np.array(0.0), "mean": np.array(0.0)},
    name="effects of groups",
)


def effects_moments(y: np.ndarray, group: np.ndarray, noise: np.ndarray) -> Moments:
    """Coordinates as a fit flattens them: effects, log scale, mean."""
    information = np.bincount(group, noise**-2, GROUPS)
    centre = np.bincount(group, y * noise**-2, GROUPS) / np.maximum(information, 1e-300)
    mean, log_scale = (
        axis.ravel()[:, None] for axis in np.meshgrid(np.linspace(-20, 20, 801), np.linspace(-7, 5, 481), indexing="ij")
    )
    between = np.exp(2 * log_scale)
    total = between + 1 / np.maximum(information, 1e-300)
    seen = information > 0
    log_density = (-0.5 * (np.log(total) + (centre - mean) ** 2 / total) * seen).sum(axis=1)
    log_density += -0.5 * ((mean / MEAN_SCALE) ** 2 + (log_scale / LOG_SCALE) ** 2)[:, 0]
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    within = 1 / (1 / between + information)
    expected = within * (mean / between + centre * information)
    given = np.column_stack([expected, log_scale, mean])
    average = mass @ given
    centred = given - average
    covariance = (centred * mass[:, None]).T @ centred
    covariance[np.arange(GROUPS), np.arange(GROUPS)] += mass @ within
    return Moments(average, covariance, np.inf)


def effects(name: str, spread: float, noise: float, count: int, sizes: str = "even") -> Problem:
    """Groups of even or very uneven sizes; with one row each they are a funnel."""
    rng = generator(name)
    chances = np.full(GROUPS, 1 / GROUPS) if sizes == "even" else 0.4 ** np.arange(GROUPS)
    group = rng.choice(GROUPS, count, p=chances / chances.sum())
    group[:GROUPS] = np.arange(GROUPS)
    truth = rng.normal(1.0, spread, GROUPS)
    scale = np.full(count, noise)
    data = {"y": rng.normal(truth[group], noise), "group": group, "noise": scale}
    return Problem(EFFECTS, data, effects_moments(data["y"], group, scale), (min(SIZE, count),))


def horseshoe_prior(position: Any) -> Any:
    """Standard normal coefficients times half-Cauchy scales, all on the logarithmic scale."""
    scales = jnp.append(position["log_local"], position["log_global"])
    return -0.5 * jnp.sum(position["raw"] ** 2) + jnp.sum(scales - jnp.log1p(jnp.exp(2 * scales)))


def coefficients(position: Any) -> Any:
    """Of the regression."""
    return position["raw"] * jnp.exp(position["log_local"] + position["log_global"])


HORSESHOE = cm.Model(
    horseshoe_prior,
    lambda position, rows: -0.5 * ((rows["y"] - rows["x"] @ coefficients(position)) / rows["noise"]) ** 2,
    initial_position={"raw": np.zeros(COLUMNS), "log_local": np.zeros(COLUMNS), "log_global": np.array(-1.0)},
    constrain=lambda position: {**position, "coefficients": coefficients(position)},
    name="horseshoe",
)


def only_coefficients(draws: Draws) -> Draws:
    """What the data speak of."""
    return {"coefficients": draws["coefficients"]}


def horseshoe_moments(x: np.ndarray, y: np.ndarray, noise: float) -> Moments:
    """Columns are orthogonal with sums of squares N."""
    variance = noise**2 / len(y)
    centre = x.T @ y / len(y)
    log_global = np.linspace(-25, 12, 741)[:, None, None]
    log_local = np.linspace(-25, 25, 1001)[None, :, None]
    slab = np.exp(2 * (log_global + log_local))
    weights = np.exp(
        -0.5 * (np.log(slab + variance) + centre**2 / (slab + variance))
        + log_local - np.logaddexp(0.0, 2 * log_local)
    )  # fmt: skip
    shrink = slab / (slab + variance)
    evidence = weights.sum(axis=1)
    first = (weights * shrink).sum(axis=1) / evidence * centre
    second = (weights * (variance * shrink + (shrink * centre) ** 2)).sum(axis=1) / evidence
    log_mass = np.log(evidence).sum(axis=1) + (log_global[:, 0, 0] - np.logaddexp(0.0, 2 * log_global[:, 0, 0]))
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    average = mass @ first
    covariance = np.einsum("g,gi,gj->ij", mass, first, first) - np.outer(average, average)
    diagonal = np.arange(COLUMNS)
    covariance[diagonal, diagonal] = mass @ second - average**2
    return Moments(average, covariance, np.inf)


def horseshoe(name: str, large: int, noise: float) -> Problem:
    """Some large coefficients, all others zero."""
    rng = generator(name)
    count = 2_048
    x = hadamard(count)[:, rng.choice(np.arange(1, count), COLUMNS, replace=False)].astype(float)
    truth = np.where(np.arange(COLUMNS) < large, 1.0, 0.0)
    y = x @ truth + rng.normal(0.0, noise, count)
    data = {"x": x, "y": y, "noise": np.full(count, noise)}
    truth_moments = horseshoe_moments(x, y, noise)
    return Problem(HORSESHOE, data, truth_moments, (SIZE,), fold=only_coefficients)


def entries() -> Iterator[Entry]:
    """All problems of these families."""
    families: dict[str, dict[str, Callable[[str], Problem]]] = {
        "groups": {
            "groups-far-apart": partial(effects, spread=2.0, noise=1.0, count=ROWS),
            "groups-alike": partial(effects, spread=0.05, noise=1.0, count=ROWS),
            "groups-of-uneven-sizes": partial(effects, spread=1.0, noise=1.0, count=ROWS, sizes="uneven"),
        },
        "funnels": {
            "funnel-noisy-rows": partial(effects, spread=0.5, noise=15.0, count=ROWS),
            "funnel-one-row-each": partial(effects, spread=1.0, noise=2.0, count=GROUPS),
        },
        "horseshoe": {
            "horseshoe-two-large": partial(horseshoe, large=2, noise=2.0),
            "horseshoe-none-large": partial(horseshoe, large=0, noise=2.0),
            "horseshoe-all-large": partial(horseshoe, large=COLUMNS, noise=8.0),
        },
    }
    for family, makes in families.items():
        for name, make in makes.items():
            yield Entry(name, family, partial(make, name))
