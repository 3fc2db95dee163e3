"""Time of one Coreset MCMC iteration against the bare cost of the log-likelihoods that it evaluates.

For M = 500, K = 2, minibatches of 5 M and all rows, and both slice kernels, one run measures

- an iteration of Coreset MCMC as the driver runs it,
- the bare cost: the evaluations it counted, each at the price of a compiled loop that evaluates nothing but
  log-likelihoods: of M rows for the kernel, of S given random rows of the data (or of all rows) for the gradient,
- the same iteration in plain NumPy.

The goal is a ratio of at most 1.3 to the bare cost; above it the command exits with 1, except with --quick, which
measures one setting on few rows. Each number is the best of several alternating repeats, because other processes share
the machine.

    coreset-mcmc bench iteration --size 98673 --repeats 7
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import ArrayData, to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.compiled import CAPACITY, chunk_for, first_for
from coreset_mcmc.kernels import HitAndRunSlice, Kernel, UnivariateSlice
from coreset_mcmc.posterior.problem import Problem, make_problem, starting_positions
from coreset_mcmc_benchmarks.kernels.numpy_twin import NumpyChain
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.ready import ready

GOAL = 1.3
CORESET_SIZE, NUM_CHAINS, NUM_FEATURES = 500, 2, 10
QUICK_SIZE = 3_000
CORESET_LOOPS = 2_000
SETTLING_STEPS = 50


def make(model_name: str, size: int) -> Problem:
    """Synthetic rows of the paper's shape, with chains started near the posterior."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, NUM_FEATURES))
    beta = 0.3 * rng.normal(size=NUM_FEATURES + 1)
    eta = beta[0] + x @ beta[1:]
    if model_name == "logistic":
        model, y = cm.models.logistic_regression(NUM_FEATURES), rng.random(size) < 1 / (1 + np.exp(-eta))
    else:
        model, y = cm.models.poisson_regression(NUM_FEATURES), rng.poisson(np.log1p(np.exp(eta)))
    data = {"x": x, "y": y.astype(float)}
    selected = Uniform().select(rng, data, size, CORESET_SIZE)
    positions = starting_positions(model, jax.random.key(0), NUM_CHAINS, {"beta": beta})
    return make_problem(model, to_array_data(data), selected, positions)


class Iteration:
    """Coreset MCMC in the driver's compiled chunks, with its count of evaluations."""

    def __init__(self, problem: Problem, kernel: Kernel, subsample_size: int | None, steps: int) -> None:
        assert steps <= CAPACITY, "more steps than fit into one chunk"
        self.problem, self.steps = problem, steps
        self.method = cm.CoresetMCMC(
            kernel=kernel,
            optimizer=cm.optimizers.Adam(0.01),
            num_chains=NUM_CHAINS,
            subsample_size=subsample_size,
            num_iterations=10**9,
        )
        self.state = first_for(self.method)(self.method, problem, jax.random.key(1))
        self.state, _ = self._advance(SETTLING_STEPS)

    def _advance(self, steps: int) -> tuple[Any, Any]:
        """The state after as many steps, and their info."""
        chunk = chunk_for(self.method)
        key, start, length = jax.random.key(2), jnp.int64(0), jnp.int32(steps)
        state, (info, _), number = ready(chunk(self.method, self.problem, key, self.state, start, length, record=None))
        assert int(number) == steps
        return state, info

    def seconds_and_rows(self) -> tuple[float, float]:
        """Time of an iteration, and rows whose log-likelihood it evaluates."""
        began = time.perf_counter()
        _, info = self._advance(self.steps)
        seconds = time.perf_counter() - began
        return seconds / self.steps, float(info.num_evaluations[: self.steps].mean())


class BareLoop:
    """A compiled loop of nothing but summed log-likelihoods under ``num_chains`` moving positions.

    Of all rows of ``data``, or of the given ones, shifted in each pass so that they come from memory as in a minibatch.
    """

    def __init__(
        self, model: cm.Model, data: ArrayData, num_chains: int, loops: int, rows: np.ndarray | None = None
    ) -> None:
        self.data, self.rows, self.loops = data, rows, loops

        def loop(beta: jax.Array, data: ArrayData, rows: jax.Array | None) -> jax.Array:
            def body(number: jax.Array, total: jax.Array) -> jax.Array:
                moving = {"beta": beta[:num_chains] + 1e-9 * number + 1e-30 * total[:, None]}

                def summed(batch: Any) -> jax.Array:
                    return jnp.sum(jax.vmap(lambda at: model.log_likelihood(at, batch))(moving), axis=1)

                if rows is None:
                    return jnp.asarray(data.sum_over_rows(summed))
                shifted = rows + 13 * number.astype(rows.dtype)
                return summed(data.take(jnp.where(shifted < data.size, shifted, shifted - data.size)))

            total: jax.Array = jax.lax.fori_loop(0, loops, body, jnp.zeros(num_chains))
            return total

        self.compiled: Callable[..., jax.Array] = jax.jit(loop)

    def seconds(self, beta: jax.Array) -> float:
        """Of one pass."""
        began = time.perf_counter()
        ready(self.compiled(beta, self.data, self.rows))
        return (time.perf_counter() - began) / self.loops


class Measured(NamedTuple):
    """Seconds of one iteration, and what it evaluated."""

    ours: float
    evaluations: float
    bare: float
    plain: float

    @property
    def ratio(self) -> float:
        """To the bare cost."""
        return self.ours / self.bare


def measure(problem: Problem, kernel: Kernel, subsample_size: int | None, is_poisson: bool, repeats: int) -> Measured:
    """Ours and the bare loops by turns, then NumPy; the shortest time of each counts."""
    data, beta = problem.data, problem.initial_positions["beta"]
    assert isinstance(data, ArrayData)
    chosen = np.random.default_rng(4).choice(data.size, subsample_size) if subsample_size else None
    on_coreset = BareLoop(problem.model, to_array_data(problem.rows), 1, CORESET_LOOPS)
    on_data = BareLoop(problem.model, data, NUM_CHAINS, 200 if subsample_size else 10, chosen)
    for loop in (on_coreset, on_data):
        loop.seconds(beta)
    iteration = Iteration(problem, kernel, subsample_size, 400 if subsample_size else 40)
    ours, small, large, rows = np.inf, np.inf, np.inf, 0.0
    for _ in range(repeats):
        seconds, rows = iteration.seconds_and_rows()
        ours, small, large = min(ours, seconds), min(small, on_coreset.seconds(beta)), min(large, on_data.seconds(beta))
    kernel_calls = (rows - NUM_CHAINS * (subsample_size or data.size)) / CORESET_SIZE
    is_univariate = isinstance(kernel, UnivariateSlice)
    twin = NumpyChain(problem, is_univariate, subsample_size, is_poisson)
    plain = min(twin.seconds(20 if is_univariate or subsample_size is None else 100) for _ in range(2))
    return Measured(ours, rows, kernel_calls * small + large, plain)


def settings(quick: bool) -> Iterator[tuple[str, Kernel, int | None]]:
    """Models, kernels and minibatch sizes."""
    kernels: tuple[Kernel, ...] = (HitAndRunSlice(), UnivariateSlice())
    everything = product(("logistic", "poisson"), kernels, (5 * CORESET_SIZE, None))
    return islice(everything, 1 if quick else None)


@double_precision
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and fail above the goal."""
    parser = quick_parser("iteration", __doc__)
    parser.add_argument("--size", type=int, default=98_673, help="rows of the data")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each timing; the best counts")
    options = parser.parse_args(arguments)
    size, repeats = (QUICK_SIZE, 1) if options.quick else (options.size, options.repeats)
    table = Table("model", "kernel", title=f"One iteration, N = {size:,}, M = {CORESET_SIZE}, K = {NUM_CHAINS}")
    for heading in ("rows S", "iteration µs", "evaluations", "bare µs", "ratio", "NumPy µs", "NumPy / ours"):
        table.add_column(heading, justify="right")
    worst = 0.0
    for model_name, kernel, subsample_size in settings(options.quick):
        problem = make(model_name, size)
        found = measure(problem, kernel, subsample_size, model_name == "poisson", repeats)
        worst = max(worst, found.ratio)
        table.add_row(
            model_name,
            type(kernel).__name__,
            f"{subsample_size or size:,}",
            f"{found.ours * 1e6:,.0f}",
            f"{found.evaluations:,.0f}",
            f"{found.bare * 1e6:,.0f}",
            f"{found.ratio:.2f}",
            f"{found.plain * 1e6:,.0f}",
            f"{found.plain / found.ours:.1f}",
        )
    console = Console(width=130)
    console.print(table)
    console.print(f"Largest ratio to the bare cost: {worst:.2f} (goal: at most {GOAL}).")
    return 0 if worst <= GOAL or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
