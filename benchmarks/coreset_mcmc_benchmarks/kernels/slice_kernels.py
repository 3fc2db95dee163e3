"""Our slice kernels beside BlackJAX's, at the paper's settings: what a step costs and where the difference comes from.

Targets are coreset posteriors of logistic (d = 11) and Poisson (d = 9) regression with M = 500 rows and weights N / M.
Both libraries run the same algorithm (Neal 2003: width 10, at most 20 doublings), so a step moves the chains by the
same law and its cost is the whole comparison: microseconds for a step of all chains, and evaluations of the log-density
per chain. BlackJAX evaluates all 42 possible ends of the bracket on every line before it starts; ours evaluates the
ends it needs. "without split" runs our kernels on the same model without its linear predictor: the gap to "ours" is
what O(M) evaluation along a line saves over a matrix product each time.

Programs are compiled first and chains have settled; the time is the minimum over many short calls, which alternate
between kernels so that a busy moment of the machine does not fall on one of them alone.
--quick has one target, one kernel and few rows.

    coreset-mcmc bench slice-kernels --rows 500
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc.slice import fixed_order
from rich.console import Console
from rich.table import Table

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.kernels import HitAndRunSlice, Kernel, UnivariateSlice, from_blackjax, init_chains, step_chains
from coreset_mcmc.models import logistic_regression, poisson_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.ready import ready

WIDTH, MAX_DOUBLINGS = 10.0, 20
DATA_SIZE = 10_000
SETTLING_CALLS = 5


@partial(jax.jit, static_argnames="num_steps")
def run_steps(
    kernel: Kernel, target: CoresetTarget, key: jax.Array, states: Any, num_steps: int
) -> tuple[Any, jax.Array]:
    """States after ``num_steps`` steps, and evaluations per step and chain."""

    def one_step(number: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        states, total = carry
        states, info = step_chains(kernel, jax.random.fold_in(key, number), states, target)
        return states, total + jnp.mean(info.num_evaluations)

    states, total = jax.lax.fori_loop(0, num_steps, one_step, (states, jnp.zeros(())))
    return states, total / num_steps


@dataclass
class Case:
    """A kernel on a target, and what was measured."""

    label: str
    kernel: Any
    target: CoresetTarget
    states: Any = None
    counts: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def prepare(self, num_chains: int, num_steps: int) -> None:
        """Compile, and let the chains settle."""
        start = self.target.model.initial_position
        positions = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf, float)] * num_chains), start)
        self.states = init_chains(self.kernel, positions, self.target)
        for number in range(SETTLING_CALLS):
            self.measure(number, num_steps)
        self.counts, self.seconds = [], []

    def measure(self, number: int, num_steps: int) -> None:
        """One timed call; the chains go on from where they are."""
        key = jax.random.fold_in(jax.random.key(0), number)
        begin = time.perf_counter()
        self.states, count = ready(run_steps(self.kernel, self.target, key, self.states, num_steps))
        self.seconds.append((time.perf_counter() - begin) / num_steps)
        self.counts.append(float(count))

    @property
    def evaluations(self) -> float:
        """Evaluations of the log-density per step and chain."""
        return float(np.mean(self.counts))

    @property
    def microseconds(self) -> float:
        """Time of a step of all chains."""
        return 1e6 * min(self.seconds)


def regression_target(
    model: Model, num_features: int, num_rows: int, draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
) -> CoresetTarget:
    """Simulated rows from the model, each standing for ``DATA_SIZE / num_rows`` of the data."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(num_rows, num_features))
    y = draw(rng, 0.5 + x @ rng.normal(size=num_features))
    weights = jnp.full(num_rows, DATA_SIZE / num_rows)
    return CoresetTarget({"x": jnp.asarray(x), "y": jnp.asarray(y, float)}, weights, model)


def make_cases(target: CoresetTarget) -> dict[str, list[Case]]:
    """The three ways to run each kernel; the first is the one the others are compared with."""
    unsplit = replace(target, model=replace(target.model, linear_predictor=None))
    theirs = {"max_expansions": MAX_DOUBLINGS}
    hit_and_run = HitAndRunSlice(width=WIDTH, max_doublings=MAX_DOUBLINGS)
    univariate = UnivariateSlice(width=WIDTH, max_doublings=MAX_DOUBLINGS)
    slice_sampling = from_blackjax(blackjax.slice_sampling, width=WIDTH, **theirs)
    coordinate_slice = from_blackjax(
        blackjax.coordinate_slice, initial_widths=WIDTH, coordinate_order=fixed_order, **theirs
    )
    return {
        "hit-and-run": [
            Case("ours", hit_and_run, target),
            Case("ours, without split", hit_and_run, unsplit),
            Case("BlackJAX slice_sampling", slice_sampling, target),
        ],
        "univariate": [
            Case("ours", univariate, target),
            Case("ours, without split", univariate, unsplit),
            Case("BlackJAX coordinate_slice", coordinate_slice, target),
        ],
    }


def make_targets(num_rows: int) -> dict[str, CoresetTarget]:
    """A logistic and a Poisson regression of the paper's dimensions."""
    return {
        "logistic, d = 11": regression_target(
            logistic_regression(10), 10, num_rows, lambda rng, eta: rng.random(eta.size) < 1 / (1 + np.exp(-eta))
        ),
        "poisson, d = 9": regression_target(
            poisson_regression(8), 8, num_rows, lambda rng, eta: rng.poisson(np.log1p(np.exp(eta)))
        ),
    }


def compare(cases: list[Case], num_chains: int, num_steps: int, repeats: int) -> Iterator[list[str]]:
    """Run the cases by turns; one line for each."""
    for case in cases:
        case.prepare(num_chains, num_steps)
    for number in range(repeats):
        for case in cases:
            case.measure(SETTLING_CALLS + number, num_steps)
    ours = cases[0]
    for case in cases:
        yield [
            case.label,
            f"{case.microseconds:.0f}",
            f"{case.evaluations:.1f}",
            f"{case.microseconds / (num_chains * case.evaluations):.2f}",
            f"{case.microseconds / ours.microseconds:.2f}",
            f"{case.evaluations / ours.evaluations:.2f}",
        ]


@double_precision
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it as one table."""
    parser = quick_parser("slice-kernels", __doc__)
    parser.add_argument("--rows", type=int, default=500, help="coreset size M")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--lines", type=int, default=50, help="slice moves of each chain in one timed call")
    parser.add_argument("--repeats", type=int, default=40, help="timed calls, of which the fastest counts")
    options = parser.parse_args(arguments)
    rows, lines, repeats = (50, 10, 2) if options.quick else (options.rows, options.lines, options.repeats)
    title = f"A step of {options.chains} chains, M = {rows}, width {WIDTH:g}, up to {MAX_DOUBLINGS} doublings"
    table = Table("target", "kernel", "", title=title)
    for column in ("µs per step", "evaluations", "µs per evaluation", "time ratio", "evaluations ratio"):
        table.add_column(column, justify="right")
    for target_name, target in islice(make_targets(rows).items(), 1 if options.quick else None):
        for kernel_name, cases in islice(make_cases(target).items(), 1 if options.quick else None):
            dimension = 1 + target.rows["x"].shape[1]
            num_steps = max(1, lines // (1 if kernel_name == "hit-and-run" else dimension))
            for cells in compare(cases, options.chains, num_steps, repeats):
                table.add_row(target_name, kernel_name, *cells, end_section=cells[0] == cases[-1].label)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
