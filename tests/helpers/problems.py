"""Small problems that several tests share, so that they share compiled programs too."""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc import CoresetMCMC
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.kernels import HitAndRunSlice
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.posterior.problem import Problem, make_problem, starting_positions

NUM_FEATURES, SIZE, CORESET_SIZE, NUM_CHAINS = 2, 400, 30, 2


def logistic_data(seed: int = 0, size: int = SIZE) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, NUM_FEATURES))
    return {"x": x, "y": (rng.random(size) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)}


def logistic_problem(seed: int = 0) -> Problem:
    data = logistic_data(seed)
    model = logistic_regression(NUM_FEATURES)
    selected = Uniform().select(np.random.default_rng(seed), data, SIZE, CORESET_SIZE)
    return make_problem(
        model, to_array_data(data), selected, starting_positions(model, jax.random.key(seed), NUM_CHAINS)
    )


def small_method(**options) -> CoresetMCMC:
    return CoresetMCMC(**{"kernel": HitAndRunSlice(), "num_chains": NUM_CHAINS, "num_iterations": 60, **options})
