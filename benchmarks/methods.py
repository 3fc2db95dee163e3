"""Every method on every model that admits it: how close, how fast, how many likelihoods for an effective draw.

One row for each problem, method and seed:

- two-moment KL of the continuous coordinates to the reference (and Jensen-Shannon of the inclusion patterns for the
  sparse regression),
- seconds of training and of sampling, compilation apart,
- the smallest bulk ESS, and how many of it a second of sampling gives,
- log-likelihoods of single rows for one effective draw, training included.

Methods run with the paper's settings where it names some (they were tuned with the true posterior: "oracle"), else
with their defaults. ``least-squares`` is the default of ``fit``. References are exact (Gaussian location), Gibbs
sampling on all rows (sparse regression) or NUTS on all rows. A run that fails is a row that says so. Rows are appended
as they come, and a second call makes only what is missing.

    python benchmarks/methods.py [--problem NAME ...] [--method NAME ...] [--seeds 1] [--data DIRECTORY]
    python benchmarks/methods.py --table     # write docs/benchmarks/methods.md from the rows
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

import coreset_mcmc as cm
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.diagnostics.metrics import jensen_shannon, min_bulk_ess, two_moment_kl
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import SpikeAndSlabGibbs, UnivariateSlice
from coreset_mcmc.methods.registry import METHODS
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.subsampling import GaussianProposal, ModeSearch, SpikeAndSlabProposal
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from references import PROBLEMS, Draws, Settings, reference_draws, unchanged

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"
ROWS, TABLE = DOCS / "methods.csv", DOCS / "methods.md"
FIELDS = [
    "problem", "method", "seed", "rows", "coreset_size", "kl", "js", "training_seconds", "sampling_seconds",
    "min_ess", "ess_per_second", "evaluations_per_effective_draw", "failure",
]  # fmt: skip
CORESET_SIZE, DRAWS, TUNE, CHAINS = 200, 1_000, 500, 4


@dataclass(frozen=True)
class Reference:
    """Moments of the continuous coordinates of the full posterior, and its patterns of discrete ones."""

    mean: np.ndarray
    covariance: np.ndarray
    patterns: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A model, its data and its reference."""

    model: cm.Model
    data: Any
    reference: Callable[[], Reference]
    overrides: dict[str, Callable[[], Any]]
    """Settings of methods that the paper gives for this model."""
    initvals: Any = None
    fold: Callable[[Draws], Draws] = unchanged
    """Maps every draw to one representative of its symmetric copies; KL and ESS are those of the folded draws."""


def continuous(draws: Draws) -> np.ndarray:
    """Draws (chain, draw, d) of all floating-point variables, in the order of their names."""
    parts = [draws[name] for name in sorted(draws) if np.issubdtype(draws[name].dtype, np.floating)]
    return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)


def draws_of(fit: cm.Fit) -> Draws:
    """Variables with leading axes (chain, draw)."""
    return {str(name): values.to_numpy() for name, values in fit.posterior.data_vars.items()}


def moments(draws: np.ndarray, patterns: np.ndarray | None = None) -> Reference:
    """A reference from long draws (chain, draw, d)."""
    pooled = draws.reshape(-1, draws.shape[-1])
    return Reference(pooled.mean(axis=0), np.cov(pooled, rowvar=False), patterns)


def nuts_reference(model: cm.Model, data: Any) -> Reference:
    """NUTS on all rows; its warnings are not suppressed."""
    fit = cm.fit(model, data, method=cm.NUTS(), draws=2_500, tune=0, chains=4, random_seed=99, progressbar=False)
    return moments(continuous(draws_of(fit)))


def gaussian() -> Case:
    """Gaussian location, d = 10, N = 10 000."""
    data = np.random.default_rng(0).normal(size=(10_000, 10))
    mean, variance = coreset_posterior(data, np.ones(len(data)))
    reference = Reference(np.asarray(mean), float(variance) * np.eye(10))
    return Case(cm.models.gaussian_location(10), data, lambda: reference, random_walk_overrides(3e-5))


def logistic() -> Case:
    """Logistic regression on synthetic rows, p = 5, N = 20 000."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    eta = -1.0 + x @ np.array([1.0, -1.0, 0.5, 0.0, 0.25])
    data = {"x": x, "y": (rng.random(len(x)) < 1 / (1 + np.exp(-eta))).astype(float)}
    model = cm.models.logistic_regression(5)
    return Case(model, data, lambda: nuts_reference(model, data), random_walk_overrides(3e-4))


def linear() -> Case:
    """Linear regression with unknown noise on synthetic rows, p = 5, N = 20 000."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    data = {"x": x, "y": 1.0 + x @ np.array([1.0, -1.0, 0.5, 0.0, 0.25]) + 2.0 * rng.normal(size=len(x))}
    model = cm.models.linear_regression(5)
    return Case(model, data, lambda: nuts_reference(model, data), random_walk_overrides(1e-4))


def poisson(directory: Path) -> Case:
    """The paper's bike-share counts, N = 15 641, d = 9."""
    table = np.loadtxt(directory / "poisson_reg.csv", delimiter=",")
    data = {"x": table[:, :8], "y": table[:, 9]}
    model = cm.models.poisson_regression(8)
    mode = ModeSearch(subsample_size=1_000, tolerance=1e-4, max_iterations=200_000)
    paper: dict[str, Callable[[], Any]] = {
        "quasi-newton": lambda: cm.QuasiNewton(kernel=UnivariateSlice(), num_iterations=100, max_trials=50),
        "austerity-mh": lambda: cm.AusterityMH(GaussianProposal(0.01)),
        "confidence-mh": lambda: cm.ConfidenceMH(GaussianProposal(0.01)),
        "sgld": lambda: cm.SGLD(step_size=2e-4, mode=mode),
        "sghmc": lambda: cm.SGHMC(mode=mode),
    }
    return Case(model, data, lambda: nuts_reference(model, data), paper)


def sparse() -> Case:
    """The paper's synthetic spike-and-slab regression, N = 50 000, ten coefficients of which five are null."""
    data = cm.models.sparse_regression_data(np.random.default_rng(0), 50_000)
    model = cm.models.sparse_regression(10)
    start = cm.models.least_squares_start(data)

    def gibbs_reference() -> Reference:
        with jax.enable_x64(True):
            rows = to_array_data(data)
            every_row = SelectedRows(np.arange(rows.size), np.ones(rows.size))
            problem = make_problem(model, rows, every_row, starting_positions(model, jax.random.key(0), CHAINS, start))
            trained = sample_coreset(problem, every_row, problem.initial_positions, SpikeAndSlabGibbs(), CHAINS)
            draws = run(trained.sampler, trained.problem, jax.random.key(1), num_steps=6_000).history.position
        kept = {name: np.swapaxes(np.asarray(values)[1_000:], 0, 1) for name, values in draws.items()}
        return moments(continuous(kept), kept["gamma"].reshape(-1, 10))

    fair = {
        "austerity-mh": lambda: cm.AusterityMH(SpikeAndSlabProposal()),
        "confidence-mh": lambda: cm.ConfidenceMH(SpikeAndSlabProposal()),
    }
    return Case(model, data, gibbs_reference, fair, start)


def beyond_laplace(name: str, folder: Path) -> Case:
    """A problem of ``benchmarks/references.py``, folded onto one of its symmetric copies."""
    problem = PROBLEMS[name]
    model, data = problem.make()

    def reference() -> Reference:
        settings = Settings(target_accept=problem.target_accept)
        return moments(continuous(problem.fold(reference_draws(name, settings, folder).draws)))

    return Case(model, data, reference, random_walk_overrides(1e-3), fold=problem.fold)


def random_walk_overrides(variance: float) -> dict[str, Callable[[], Any]]:
    """Proposals of about 2.4 posterior standard deviations over root d, which the paper's would be at its own data."""
    return {
        "austerity-mh": lambda: cm.AusterityMH(GaussianProposal(variance)),
        "confidence-mh": lambda: cm.ConfidenceMH(GaussianProposal(variance)),
    }


def default_settings(name: str) -> Any:
    """What stands for a method unless the paper gives settings for the model."""
    if name == "coreset-mcmc":
        return cm.CoresetMCMC(num_chains=4, num_iterations=100_000, epochs=cm.DoublingEpochs())
    if name == "sparse-vi":
        return cm.SparseVI(num_updates=20, subsample_size=1_000)
    if name == "sparse-hamiltonian-flow":
        return cm.SparseHamiltonianFlow(num_iterations=20_000)
    return METHODS[name]()


def measure(name: str, case: Case, reference: Reference, seed: int) -> dict[str, Any]:
    """One fit and its row."""
    size = jax.tree.leaves(case.data)[0].shape[0]
    row: dict[str, Any] = {"rows": size, "coreset_size": CORESET_SIZE}
    method = case.overrides[name]() if name in case.overrides else default_settings(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = cm.fit(
                case.model, case.data, coreset_size=CORESET_SIZE, draws=DRAWS, tune=TUNE, chains=CHAINS,
                random_seed=seed, method=method, initvals=case.initvals, progressbar=False,
            )  # fmt: skip
    except (cm.InputError, cm.RunError) as error:
        return row | {"failure": str(error).replace("\n", " ")[:160]}
    draws = continuous(case.fold(draws_of(fit)))
    ess = min_bulk_ess(draws)
    num_evaluations = sum(cost.num_evaluations for cost in (fit.pilot, fit.training, fit.sampling))
    row |= {
        "kl": two_moment_kl(draws, reference.mean, reference.covariance),
        "training_seconds": fit.pilot.seconds + fit.training.seconds,
        "sampling_seconds": fit.sampling.seconds,
        "min_ess": ess,
        "ess_per_second": ess / fit.sampling.seconds,
        "evaluations_per_effective_draw": num_evaluations / ess,
    }
    if reference.patterns is not None:
        gamma = fit.posterior["gamma"].to_numpy()
        row["js"] = jensen_shannon(gamma.reshape(-1, gamma.shape[-1]), reference.patterns)
    return row


def existing_rows() -> list[dict[str, str]]:
    """Rows made so far."""
    if not ROWS.exists():
        return []
    with ROWS.open() as file:
        return list(csv.DictReader(file))


def append(row: dict[str, Any]) -> None:
    """Add a row at once, so that an interruption loses nothing."""
    is_new = not ROWS.exists()
    with ROWS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        short = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}
        writer.writerow({field: short.get(field, "") for field in FIELDS})


def write_table() -> None:
    """One Markdown table for each problem, best KL first, failures last."""
    lines = [
        "# Every method on every model",
        "",
        "`python benchmarks/methods.py` measures, `python benchmarks/methods.py --table` writes this page from",
        "[methods.csv](methods.csv). Coresets have 200 rows; 4 chains of 1 000 draws each after 500 discarded.",
        "Methods have the paper's settings where it names some (chosen by the authors with the true posterior at",
        "hand), else their defaults; `least-squares` is the default of `fit`, `coreset-mcmc` the paper's algorithm",
        "with Hot DoG in doubling epochs, which needs no learning rate either. Proposal variances of the two",
        "Metropolis-Hastings methods fit the posterior's scale, except on the paper's own data, where they are the",
        "paper's. KL is the two-moment KL to the reference; about d (d + 3) / (4 ESS) of it is Monte Carlo noise.",
        "Evaluations count log-likelihoods of single rows, training included, for one effective draw. Seconds leave",
        "compilation out; the two cores were shared. Sparse VI (20 updates on 1 000 rows for each row added) and flows",
        "(20 000 steps) train for less than their defaults, to end within minutes. Chains start where the model",
        "says, on the Poisson data far from the posterior: Metropolis-Hastings has not arrived after 1 500 steps. The",
        "ESS of Laplace draws is too high, because resampling repeats some of them in random order.",
        "",
    ]
    rows = existing_rows()
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        mine.sort(key=lambda row: float(row["kl"]) if row["kl"] else np.inf)
        has_js = any(row["js"] for row in mine)
        lines += [f"## {problem} ({int(mine[0]['rows']):,} rows)", ""]
        heading = ["method", "KL", *(["JS"] if has_js else []), "training s", "ESS/s", "evaluations / effective draw"]
        lines += ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
        for row in mine:
            if row["failure"]:
                refusal = (
                    "refused: no gradients, or discrete parameters" if "expected" in row["failure"] else row["failure"]
                )
                lines.append(f"| {row['method']} | {refusal} |" + " |" * (len(heading) - 2))
                continue
            cells = [row["method"], row["kl"], *([row["js"]] if has_js else []), row["training_seconds"]]
            cells += [row["ess_per_second"], f"{float(row['evaluations_per_effective_draw']):,.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    TABLE.write_text("\n".join(lines))


def main() -> int:
    """Measure what is missing, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", nargs="*", help="only these problems")
    parser.add_argument("--method", nargs="*", help="only these methods")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the folder with poisson_reg.csv; without it Poisson is left out")
    parser.add_argument(
        "--references", type=Path, help="the folder of benchmarks/references.py; without it those are left out"
    )
    parser.add_argument("--table", action="store_true", help="only write the Markdown page")
    options = parser.parse_args()
    console = Console()
    if options.table:
        write_table()
        return 0
    cases: dict[str, Callable[[], Case]] = {
        "gaussian": gaussian, "logistic": logistic, "linear": linear, "sparse": sparse,
    }  # fmt: skip
    if options.data is not None:
        cases["poisson"] = lambda: poisson(options.data)
    if options.references is not None:
        cases |= {name: partial(beyond_laplace, name, options.references) for name in PROBLEMS}
    done = {(row["problem"], row["method"], int(row["seed"])) for row in existing_rows()}
    for problem, make in cases.items():
        if options.problem and problem not in options.problem:
            continue
        wanted = [
            (method, seed)
            for seed in range(1, options.seeds + 1)
            for method in METHODS
            if (not options.method or method in options.method) and (problem, method, seed) not in done
        ]
        if not wanted:
            continue
        case = make()
        reference = case.reference()
        for method, seed in wanted:
            began = time.perf_counter()
            row = {"problem": problem, "method": method, "seed": seed, **measure(method, case, reference, seed)}
            append(row)
            outcome = row.get("failure") or f"KL {row['kl']:.3g}, {row['ess_per_second']:.0f} ESS/s"
            console.print(f"{problem:10s} {method:24s} {time.perf_counter() - began:6.1f} s  {outcome}")
    write_table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
