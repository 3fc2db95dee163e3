"""Random models with one parameter: a prior, a chain of transformations, a family, rows; truth on a grid.

A run that is wrong (true KL above 0.1) and called good is what this looks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.verdict import GOOD
from coreset_mcmc_benchmarks.verdicts.measure import measure
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.zoo.grids import Box, grid_moments

TRUE_GOOD, DRAWS = 0.1, 1_000

Function = Callable[[Any], Any]

STEPS: dict[str, Function] = {
    "double": lambda value: 2.0 * value,
    "shift": lambda value: value + 1.0,
    "square": lambda value: value**2,
    "magnitude": jnp.abs,
    "sine": jnp.sin,
    "squash": jnp.tanh,
    "soft": lambda value: jnp.logaddexp(0.0, value),
    "floor": jnp.floor,
    "flip": lambda value: -value,
    "cube": lambda value: value**3 / 4,
}

PRIORS: dict[str, tuple[Function, Box]] = {
    "normal": (lambda value: -0.5 * (value / 2) ** 2, [(-14.0, 14.0)]),
    "Laplace": (lambda value: -jnp.abs(value), [(-25.0, 25.0)]),
    "interval": (lambda value: jnp.where(jnp.abs(value) < 3, 0.0, -jnp.inf), [(-3.0, 3.0)]),
    "half-normal": (lambda value: jnp.where(value > 0, -0.5 * value**2, -jnp.inf), [(0.0, 9.0)]),
}

FAMILIES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[np.random.Generator, np.ndarray], np.ndarray]]] = {
    "normal": (lambda eta, y: -0.5 * (y - eta) ** 2, lambda rng, eta: rng.normal(eta, 1.0)),
    "Cauchy": (lambda eta, y: -jnp.log1p((y - eta) ** 2), lambda rng, eta: eta + rng.standard_cauchy(len(eta))),
    "Poisson": (
        lambda eta, y: y * jnp.clip(eta, -20, 6) - jnp.exp(jnp.clip(eta, -20, 6)),
        lambda rng, eta: rng.poisson(np.exp(np.clip(eta, -20, 6))).astype(float),
    ),
    "logistic": (
        lambda eta, y: -jnp.logaddexp(0.0, (1 - 2 * y) * eta),
        lambda rng, eta: (rng.random(len(eta)) < 1 / (1 + np.exp(-np.clip(eta, -30, 30)))).astype(float),
    ),
    "end": (
        lambda eta, y: jnp.where(y < jnp.exp(jnp.clip(eta, -20, 20)), -jnp.clip(eta, -20, 20), -jnp.inf),
        lambda rng, eta: rng.random(len(eta)) * np.exp(np.clip(eta, -20, 20)),
    ),
}


class Drawn(NamedTuple):
    """A random model in words, and the problem."""

    words: str
    problem: Problem


def drawn(seed: int) -> Drawn:
    """Everything follows from the seed."""
    rng = np.random.default_rng(seed)

    def one(names: Any) -> str:
        return str(rng.choice(list(names)))

    prior, family = one(PRIORS), one(FAMILIES)
    chain = [one(STEPS) for _ in range(int(rng.integers(0, 4)))]
    count = int(rng.choice([10, 300, 300]))
    (log_prior, box), (row, simulate) = PRIORS[prior], FAMILIES[family]

    def through(value: Any) -> Any:
        for name in chain:
            value = STEPS[name](value)
        return value

    column = rng.normal(size=count) if rng.random() < 0.3 else np.ones(count)
    true = float(abs(rng.normal()) if prior == "half-normal" else np.clip(rng.normal(), -2.5, 2.5))
    y = simulate(rng, np.asarray(through(jnp.asarray(true))) * column)
    model = cm.Model(
        lambda position: log_prior(position[0]),
        lambda position, rows: row(through(position[0]) * rows["x"], rows["y"]),
        initial_position=np.array([0.5]),
        name="random",
    )
    data = {"x": column, "y": y}
    words = f"{prior} prior, {' of '.join(reversed(chain)) or 'as it is'}, {family}, {count} rows"
    return Drawn(words, Problem(model, data, grid_moments(model, data, box), (min(count, 100),)))


class Outcome(NamedTuple):
    """Of one model."""

    words: str
    verdict: str
    true_kl: float
    failure: str

    @property
    def trouble(self) -> str:
        """What must not happen; empty if it did not."""
        if self.verdict == "crashed":
            return self.failure
        is_wrong = self.verdict == GOOD and not self.true_kl < TRUE_GOOD
        return f"wrong by {self.true_kl:.3g} nats and good" if is_wrong else ""


def tried_model(seed: int) -> Outcome:
    """Fit, ask for the verdict, compare."""
    try:
        made = drawn(seed)
    except ValueError as error:
        return Outcome(f"seed {seed}", "no truth", math.nan, str(error)[:100])
    row = measure(made.problem, "default", made.problem.sizes[0], seed, DRAWS)
    jax.clear_caches()
    return Outcome(made.words, str(row["verdict"]), float(row.get("true_kl", math.nan)), str(row.get("failure", "")))
