"""Kernels in whitened coordinates: what a step costs with many parameters, and any factor of a covariance serves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.kernels import WhitenedHMC, WhitenedNUTS, init_chains, step_chains
from coreset_mcmc.posterior.target import CoresetTarget

NUM_PARAMETERS, NUM_ROWS, NUM_CHAINS = 7, 3, 5


def target() -> CoresetTarget:
    generator = np.random.default_rng(0)
    rows = {"x": generator.normal(size=(NUM_ROWS, NUM_PARAMETERS - 1)), "y": np.array([0.0, 1.0, 1.0])}
    return CoresetTarget(rows, jnp.ones(NUM_ROWS), cm.models.logistic_regression(NUM_PARAMETERS - 1))


def start(num_chains: int = NUM_CHAINS) -> dict[str, jax.Array]:
    return {"beta": jnp.zeros((num_chains, NUM_PARAMETERS))}


def shapes_made(jaxpr) -> set[tuple[int, ...]]:
    """Of everything that a program computes, loops and branches included."""
    found = set()
    for equation in jaxpr.eqns:
        found |= {variable.aval.shape for variable in equation.outvars}
        for inner in jaxprs_in_params(equation.params):
            found |= shapes_made(inner)
    return found


@pytest.mark.parametrize("kernel", [WhitenedHMC, WhitenedNUTS])
@double_precision
def test_a_step_makes_no_matrix_of_all_parameters(kernel):
    """So that its cost grows with the square of their number and not with the cube."""
    made = kernel(np.eye(NUM_PARAMETERS), 0.5)
    states = init_chains(made, start(), target())
    steps = jax.make_jaxpr(lambda key: step_chains(made, key, states, target()))(jax.random.key(0))
    shapes = shapes_made(steps.jaxpr)
    assert any(shape[-1:] == (NUM_PARAMETERS,) for shape in shapes)
    assert not [shape for shape in shapes if shape[-2:] == (NUM_PARAMETERS, NUM_PARAMETERS)]


@double_precision
def test_another_factor_of_the_same_covariance_moves_by_the_same_law():
    """A rotation of the noise: energies of the first trajectory differ, means over many do not."""
    generator = np.random.default_rng(1)
    factor = np.linalg.cholesky(np.cov(generator.normal(size=(NUM_PARAMETERS, 40))))
    rotation = np.linalg.qr(generator.normal(size=(NUM_PARAMETERS, NUM_PARAMETERS)))[0]
    rates = []
    for scale in (factor, factor @ rotation):
        kernel = WhitenedHMC(scale, 0.9)
        states = init_chains(kernel, start(2_000), target())
        rates.append(np.asarray(step_chains(kernel, jax.random.key(2), states, target())[1].acceptance_rate))
    error = np.hypot(*(rate.std() / np.sqrt(len(rate)) for rate in rates))
    assert abs(rates[0].mean() - rates[1].mean()) < 4 * error
