"""The demonstration: which flights out of New York are cancelled, from a few hundred of 297 924 rows."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from coreset_mcmc.commands.summary import print_words
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import ArrayData, to_array_data
from coreset_mcmc.datasets import flight_cancellations
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.report import plots
from coreset_mcmc.results.fit import Fit

NUM_TIMINGS = 5


def run_demo(console: Console, *, coreset_size: int, draws: int, chains: int, seed: int, folder: Path) -> Fit:
    """Fit, report and plot."""
    began = time.perf_counter()
    flights = flight_cancellations()
    data = {"x": flights.x, "y": flights.y}
    size, num_features = flights.x.shape
    console.print(
        f"[bold]Which flights are cancelled?[/bold] {size:,} flights out of New York City in 2013, "
        f"{flights.y.mean():.2%} cancelled.\n"
        f"Logistic regression on {num_features} standardised features of weather and schedule. A coreset of "
        f"{coreset_size} weighted flights, those that matter most, stands in for all of them."
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fit(
            logistic_regression(num_features),
            data,
            coreset_size=coreset_size,
            draws=draws,
            chains=chains,
            random_seed=seed,
            coords={"coefficient": ["intercept", *flights.names]},
        )
    console.print(_table(fitted))
    print_words(console, "ESS", "R-hat", "KL", "pass")
    for warning in caught:
        console.print(f"[yellow]{warning.message}[/yellow]")
    _print_cost(console, fitted, _full_evaluation_seconds(data), time.perf_counter() - began)
    picture = plots.save_overview(
        fitted,
        folder / "coreset-demo.png",
        variable="beta",
        labels=dict(enumerate(flights.names, start=1)),
        title=f"Flight cancellations: {fitted.coreset.size} of {size:,} flights",
    )
    saved = fitted.save(folder / "coreset-demo.nc")
    console.print(f"Picture: {picture}\nDraws, coreset and training history (ArviZ, netCDF): {saved}")
    return fitted


def _table(fitted: Fit) -> Table:
    summary = fitted.summary(round_to="none")
    table = Table(title="Effect of one standard deviation on the log odds of cancellation", title_justify="left")
    table.add_column("coefficient")
    columns = {
        "mean": "mean",
        "sd": "sd",
        "eti89_lb": "89% from",
        "eti89_ub": "to",
        "ess_bulk": "ESS",
        "r_hat": "R-hat",
    }
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for label, row in summary.iterrows():
        name = str(label).removeprefix("beta[").removesuffix("]")
        table.add_row(name, *(f"{row[key]:.0f}" if key == "ess_bulk" else f"{row[key]:.3f}" for key in columns))
    return table


def _print_cost(console: Console, fitted: Fit, full_seconds: float, total_seconds: float) -> None:
    stages = {
        "pilot": fitted.pilot,
        "training": fitted.training,
        "sampling": fitted.sampling,
        "final check": fitted.check,
    }
    table = Table(title="Cost", title_justify="left")
    for heading in ("stage", "seconds", "compiling", "passes over the full data"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for name, cost in stages.items():
        if not cost.num_evaluations:
            continue
        passes = cost.num_evaluations / fitted.coreset.num_rows
        table.add_row(name, f"{cost.seconds:.1f}", f"{cost.compile_seconds:.1f}", f"{passes:,.0f}")
    console.print(table)
    num_evaluations = int(np.sum(fitted.tree["sample_stats"]["n_steps"].to_numpy()))
    ess = float(fitted.summary(round_to="none")["ess_bulk"].min())
    console.print(
        f"Estimated distance (KL) from the coreset posterior to that of all flights: "
        f"[bold]{fitted.kl_estimate:.2g}[/bold] nats, as if one coefficient were off by "
        f"[bold]{np.sqrt(2.0 * fitted.kl_estimate):.2f}[/bold] of its standard deviations "
        f"({fitted.training.reason} after {fitted.training.num_steps:,} steps of training).\n"
        f"Smallest effective sample size: [bold]{ess:,.0f}[/bold] draws, sampled in {fitted.sampling.seconds:.1f} s. "
        f"One log-likelihood of all rows takes {full_seconds * 1e3:.1f} ms here, "
        f"so the {num_evaluations:,} evaluations behind the kept draws would take "
        f"[bold]{num_evaluations * full_seconds:,.0f} s[/bold] on the full data with the same sampler.\n"
        f"From start to finish: [bold]{total_seconds:.0f} s[/bold], with loading and compilation."
    )


@double_precision
def _full_evaluation_seconds(data: dict[str, np.ndarray]) -> float:
    """The best of a few timings of one log-likelihood summed over all rows."""
    model = logistic_regression(data["x"].shape[1])
    position = jax.tree.map(jax.numpy.asarray, model.initial_position)

    @jax.jit
    def total(position: dict[str, jax.Array], data: ArrayData) -> jax.Array:
        result: jax.Array = data.sum_over_rows(lambda batch: jax.numpy.sum(model.log_likelihood(position, batch)))
        return result

    rows = to_array_data(data)
    total(position, rows).block_until_ready()
    timings = []
    for _ in range(NUM_TIMINGS):
        began = time.perf_counter()
        total(position, rows).block_until_ready()
        timings.append(time.perf_counter() - began)
    return min(timings)
