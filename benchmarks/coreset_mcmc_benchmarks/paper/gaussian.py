"""Figure 1: Coreset MCMC on the Gaussian location model, where the KL is known exactly (section 3.4).

N = 10 000 standard normal rows in d = 20 dimensions; unless varied, M = 30, K = 20, S = 30, lag correlation root 0.8.
Steps gamma (t + 1)^(alpha - 1) with gamma = c N / M, alpha = 1 for all rows and 0.5 for minibatches. The paper states
c = 0.1; with K = 2 and all rows that step is unstable in mean square, so the first panel has c = 0.05, as the authors'
own script does.

Each curve is drawn twice: with the feasible set that the paper states, {w >= 0, sum w = N}, and with {sum w = N}
alone. An exact coreset needs d + 1 equations, so M = 30 suffices without the sign; with it the mean of the data must
lie in the convex hull of the coreset rows, which at M = 30 happens with probability 0.03 (Wendel's theorem). The floor
that the sign implies is the distance of the mean from that hull.

The sum of all log-likelihoods is N times that of the mean row, up to a constant in theta, so a full-data gradient is
exact at the cost of a single row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Batch, Key, pytree
from coreset_mcmc.data import ArrayData
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.run import run
from coreset_mcmc.driver.steps import Steps
from coreset_mcmc.kernels import GaussianAutoregression
from coreset_mcmc.methods import CoresetMCMC
from coreset_mcmc.methods.coreset_mcmc.optimizers import SGD
from coreset_mcmc.methods.coreset_mcmc.projections import Affine, FeasibleSet, Simplex
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.problem import Problem, make_problem

SIZE, DIMENSION = 10_000, 20
CORESET_SIZE, NUM_CHAINS, SUBSAMPLE_SIZE, BETA = 30, 20, 30, 0.8
DATA_SEED = 0
"""Of NumPy's old generator: these are the rows of the authors' script, so floors and starts can be compared."""
POINTS_PER_CURVE = 80

FEASIBLE_SETS: dict[str, FeasibleSet] = {"simplex": Simplex(), "affine": Affine()}


@dataclass(frozen=True)
class Variant:
    """One curve of the figure."""

    panel: str
    feasible_set: str
    num_chains: int = NUM_CHAINS
    coreset_size: int = CORESET_SIZE
    beta: float = BETA
    subsample_size: int = SUBSAMPLE_SIZE
    rate: float = 0.1
    """c = gamma M / N."""

    @property
    def is_full(self) -> bool:
        return self.subsample_size == SIZE

    @property
    def alpha(self) -> float:
        return 1.0 if self.is_full else 0.5

    @property
    def cost_per_iteration(self) -> float:
        """(M + S) log K, the paper's measure."""
        return float((self.coreset_size + self.subsample_size) * np.log(self.num_chains))

    @property
    def name(self) -> str:
        return (
            f"{self.panel}/{self.feasible_set}/K={self.num_chains}/M={self.coreset_size}/beta={self.beta:g}"
            f"/S={self.subsample_size}"
        )


def _variants() -> list[Variant]:
    found = []
    for name in FEASIBLE_SETS:
        for num_chains in (2, 10, 20, 50, 100, 500):
            found.append(Variant("a", name, num_chains=num_chains, subsample_size=SIZE, rate=0.05))
            found.append(Variant("b", name, num_chains=num_chains))
        found += [Variant("c", name, coreset_size=size) for size in (2, 10, 20, 25, 30, 40, 100, 200, 400)]
        found += [Variant("d", name, beta=beta) for beta in (*np.arange(10) / 10, 0.99)]
    return found


VARIANTS = _variants()
FEW_VARIANTS = [
    variant
    for variant in VARIANTS
    if variant.num_chains in (2, 20) and variant.coreset_size in (10, 30, 100) and variant.beta in (0.0, 0.8)
]
"""Enough to see every panel."""
VARIANT_OF = {variant.name: variant for variant in VARIANTS}


@pytree
@dataclass(frozen=True)
class MeanRow:
    """All rows of a Gaussian location model, summed through their mean: exact up to a constant in theta.

    Everything but sums is that of the rows themselves.
    """

    rows: ArrayData
    mean: jax.Array
    """(1, d)."""

    @property
    def size(self) -> int:
        return self.rows.size

    def sum_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return jax.tree.map(lambda value: self.size * value, function(self.mean))

    def take(self, indices: jax.Array | np.ndarray) -> Batch:
        return self.rows.take(indices)

    def map_over_rows(self, function: Callable[[Batch], jax.Array]) -> jax.Array:
        return self.rows.map_over_rows(function)

    def max_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return self.rows.max_over_rows(function)

    def argmax_over_rows(self, function: Callable[[Batch], jax.Array]) -> tuple[jax.Array, jax.Array]:
        return self.rows.argmax_over_rows(function)


class CurveInfo(NamedTuple):
    """What a step of a curve reports."""

    kl: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class WithExactKL(Steps):
    """Coreset MCMC that also reports the exact KL of its weights."""

    method: CoresetMCMC

    name = "coreset-mcmc"

    def init(self, key: Key, problem: Problem) -> Any:
        return self.method.init(key, problem)

    def init_evaluations(self, problem: Problem) -> int:
        return self.method.init_evaluations(problem)

    def step(self, key: Key, state: Any, problem: Problem) -> tuple[Any, CurveInfo]:
        state, info = self.method.step(key, state, problem)
        full_sum = problem.data.sum_over_rows(lambda batch: jnp.sum(batch, axis=0))
        kl = exact_kl(problem.rows, state.weights, full_sum, problem.data.size)
        return state, CurveInfo(kl, info.num_evaluations, info.status)

    def describe(self, info: CurveInfo) -> str:
        return f"KL {info.kl[-1]:.3g}"


def exact_kl(rows: jax.Array, weights: jax.Array, full_sum: jax.Array, size: int) -> jax.Array:
    """KL(pi_w || pi), written so that it does not cancel when the total weight is close to N."""
    mean, variance = coreset_posterior(rows, weights)
    excess = (size - jnp.sum(weights)) * variance
    gap = mean - full_sum / (1.0 + size)
    return 0.5 * rows.shape[1] * (excess - jnp.log1p(excess)) + 0.5 * (1.0 + size) * jnp.sum(gap**2)


@lru_cache
def data() -> np.ndarray:
    """The rows; the coreset is the first M of them."""
    return np.random.RandomState(DATA_SEED).normal(size=(DIMENSION, SIZE)).T


class Curve(NamedTuple):
    """KL after selected iterations."""

    iterations: np.ndarray
    kl: np.ndarray
    seconds: float
    num_evaluations: int


@double_precision
def run_curve(variant: Variant, num_iterations: int, seed: int) -> Curve:
    """Chains start with independent draws of the first coreset posterior."""
    rows = data()
    chosen = SelectedRows(np.arange(variant.coreset_size), np.full(variant.coreset_size, SIZE / variant.coreset_size))
    method = WithExactKL(
        CoresetMCMC(
            kernel=GaussianAutoregression(variant.beta),
            optimizer=SGD(variant.rate * SIZE / variant.coreset_size, variant.alpha),
            feasible_set=FEASIBLE_SETS[variant.feasible_set],
            num_chains=variant.num_chains,
            subsample_size=None if variant.is_full else variant.subsample_size,
            num_iterations=num_iterations,
        )
    )
    start_key, run_key = jax.random.split(jax.random.key(seed))
    mean, variance = coreset_posterior(jnp.asarray(rows[chosen.indices]), jnp.asarray(chosen.weights))
    noise = jax.random.normal(start_key, (variant.num_chains, DIMENSION), jnp.float64)
    starts = {"theta": mean + jnp.sqrt(variance) * noise}
    source = MeanRow(ArrayData(jnp.asarray(rows)), jnp.mean(jnp.asarray(rows), axis=0, keepdims=True))
    problem = make_problem(gaussian_location(DIMENSION), source, chosen, starts)
    made = run(method, problem, run_key, num_steps=num_iterations)
    places = np.unique(np.geomspace(1, num_iterations, POINTS_PER_CURVE).astype(int))
    return Curve(places, np.asarray(made.history.kl)[places - 1], made.seconds, made.num_evaluations)


@lru_cache
def floor(coreset_size: int, feasible_set: str) -> float:
    """The smallest KL of any weights in the set: least squares in (Yw - X1) subject to it; 0 below rounding."""
    rows, full = data()[:coreset_size], data().sum(axis=0)
    scale = 1e6
    system = np.vstack([rows.T, np.full(coreset_size, scale)])
    goal = np.append(full, scale * SIZE)
    if feasible_set == "affine":
        weights = np.linalg.lstsq(system, goal, rcond=None)[0]
    else:
        weights = nnls(system, goal, maxiter=100 * coreset_size)[0]
    value = float(np.sum((rows.T @ weights - full) ** 2) / (2.0 * (1.0 + SIZE)))
    return value if value > 1e-8 else 0.0


def heuristic(variant: Variant, iterations: np.ndarray) -> np.ndarray:
    """The paper's approximation of E[KL] after t iterations, with the factor d in the first term that it lacks."""
    c, alpha, d = variant.rate, variant.alpha, DIMENSION
    t = np.asarray(iterations, float)
    start = np.exp(-2.0 * c * (t**alpha - 1.0) / alpha) * d * SIZE / (2.0 * variant.coreset_size)
    s, k = variant.subsample_size, variant.num_chains
    noise = c * (SIZE - s) * d * (k + d) * (1.0 + (1.0 - alpha) * np.log(t)) / (4.0 * s * (k - 1) * t ** (1.0 - alpha))
    return np.asarray(start + noise)
