"""What a sampler is given for nothing where finding it would take hours: the Gaussian at the mode of all rows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearch, approximation_at, find_mode
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc_benchmarks.speed.ours import model_of
from coreset_mcmc_benchmarks.speed.sizes import Data


@double_precision
def laplace_approximation(name: str, data: Data) -> tuple[LaplaceApproximation, Any]:
    """The Gaussian at the mode of all rows, and how to unflatten its draws."""
    model, rows = model_of(name, data), to_array_data(data)
    starts = starting_positions(model, jax.random.key(0), 1)
    selected = Uniform().select(np.random.default_rng(0), data, rows.size, 1)
    state, info = jax.jit(lambda problem: find_mode(problem, NewtonSearch()))(
        make_problem(model, rows, selected, starts)
    )
    if int(info.status) != Status.OK.value:
        raise RunError(f"laplace: {Status(int(info.status)).message}")
    return approximation_at(state), ravel_pytree(jax.tree.map(lambda leaf: leaf[0], starts))[1]
