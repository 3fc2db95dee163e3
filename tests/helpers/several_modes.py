"""Posteriors with several modes, of which the start lies in a lesser one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm

SIZE = 2_000


def clusters(generator, start=50.0, shares=(0.6, 0.4)):
    """A Cauchy location for two clusters of rows, at 0 and at 50."""
    counts = [round(SIZE * share) for share in shares]
    y = np.concatenate([generator.normal(size=counts[0]), 50.0 + generator.normal(size=counts[1])])
    model = cm.Model(
        lambda position: -0.5 * (position["centre"] / 100.0) ** 2,
        lambda position, rows: -jnp.log1p((rows["y"] - position["centre"]) ** 2),
        {"centre": np.asarray(start)},
        name="clusters",
    )
    return model, {"y": generator.permutation(y)}


def frequency(generator, true=1.7, start=0.4):
    """A sinusoid seen at random times: as many modes as cycles."""
    time = generator.uniform(0.0, 40.0, SIZE)
    y = np.sin(2.0 * np.pi * true * time) + generator.normal(size=SIZE)

    def log_likelihood(position, rows):
        angle = 2.0 * jnp.pi * position["frequency"] * rows["time"]
        wave = position["wave"][0] * jnp.sin(angle) + position["wave"][1] * jnp.cos(angle)
        return -0.5 * (rows["y"] - wave) ** 2

    model = cm.Model(
        lambda position: -0.5 * (position["frequency"] / 3.0) ** 2 - 0.5 * jnp.sum(position["wave"] ** 2),
        log_likelihood,
        {"frequency": np.asarray(start), "wave": np.full(2, 0.1)},
        name="frequency",
    )
    return model, {"time": time, "y": y}


def narrow_and_broad(generator):
    """Responses of 8.5 that only theta = 3.3, to within a hundredth, explains; a slow rise draws all others away."""
    model = cm.Model(
        lambda position: -0.5 * (position["theta"] / 5.0) ** 2,
        lambda position, rows: -0.5 * (rows["y"] - 8.0 * _bump(position["theta"]) - 0.05 * position["theta"]) ** 2,
        {"theta": np.zeros(())},
        name="narrow",
    )
    return model, {"y": 8.5 + generator.normal(size=SIZE)}


def _bump(theta):
    return jnp.exp(-0.5 * ((theta - 3.3) / 0.01) ** 2)


def factors(generator, prior_mean=0.3, size=SIZE):
    """A slope that is a product: two modes, of which the prior prefers the positive one a little."""
    x = generator.normal(size=size)
    model = cm.Model(
        lambda position: -0.5 * (position["first"] - prior_mean) ** 2 - 0.5 * position["second"] ** 2,
        lambda position, rows: -0.5 * (rows["y"] - position["first"] * position["second"] * rows["x"]) ** 2,
        {"first": np.asarray(-1.0), "second": np.asarray(-1.0)},
        name="factors",
    )
    return model, {"x": x, "y": 1.2 * x + generator.normal(size=size)}


def share_of_positive(data, prior_mean=0.3):
    """Of the mass of :func:`factors` where the first factor is above zero, by a sum over a grid.

    Given the first factor a the second is Gaussian: its integral is exp(g^2 / (2 A)) / sqrt(A), with A = 1 + a^2 x'x
    and g = a x'y.
    """
    a = np.linspace(-6.0, 6.0, 200_001)
    precision = 1.0 + a**2 * np.sum(data["x"] ** 2)
    log_density = -0.5 * (a - prior_mean) ** 2 - 0.5 * np.log(precision)
    log_density = log_density + 0.5 * (a * np.sum(data["x"] * data["y"])) ** 2 / precision
    density = np.exp(log_density - log_density.max())
    return float(density[a > 0].sum() / density.sum())
