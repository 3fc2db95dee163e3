"""Whether the verdict of ``cm.trust`` can be trusted: verdicts against true distances to the full posterior.

Each run fits a problem, from hopelessly few rows to enough of them, asks ``fit.trust()`` and measures the true
two-moment KL to a long reference: closed form (Gaussian location), NUTS or Gibbs sampling on all rows. What random
draws of the reference would score themselves, d (d + 3) / 4 (1 / ESS + 1 / ESS of the reference), is subtracted.
Constructions:

- ``default``: ``fit`` as it comes;
- ``random-rows``: the same method on rows drawn uniformly, which may miss what is rare;
- ``uniform``: such rows with equal weights, nothing trained;
- ``tripled``: weights of ``random-rows`` times three, a posterior that is too narrow in every direction.

A row of the table holds the numbers behind the verdict. Rows are appended as they come, and a second call makes only
what is missing. ``--table`` judges the recorded numbers by the rules as they are now and writes the tables of
``docs/trust.md`` between its two marks.

    python benchmarks/trust.py [--problem NAME ...] [--seeds 1] [--references FOLDER] [--data DIRECTORY]
    python benchmarks/trust.py --table
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.diagnostics.mixing import SamplingQuality, sampling_quality
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.verdict import BAD, CARE, GOOD, Finding, rules
from coreset_mcmc.verdict.verdict import worst
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.references import continuous, draws_of, key_of, reference
from references import PROBLEMS, Draws, Settings, convergence, sample, unchanged

DOCS = Path(__file__).parents[1] / "docs"
ROWS, PAGE, PAPER = DOCS / "benchmarks" / "trust.csv", DOCS / "trust.md", DOCS / "paper" / "references"
BEGIN, END = "<!-- tables of benchmarks/trust.py begin -->", "<!-- tables of benchmarks/trust.py end -->"
FIELDS = [
    "problem", "construction", "coreset_size", "seed", "rows", "dimension", "true_kl", "noise", "half_variance",
    "kl_estimate", "pareto_k", "effective_draws", "num_draws", "rhat_across_coresets", "largest_shift",
    "effective_rows", "size_sensitivity", "rhat", "ess", "num_diverging", "cpu_seconds", "num_evaluations", "failure",
    "kl_of_others",
]  # fmt: skip
DRAWS, CHAINS, DATA_SEED, SMALL = 1_000, 4, 2_024, 2_000
TRUE_GOOD, TRUE_BAD = 0.1, 1.0
"""Nats: the limits that the verdict itself has for the estimated KL, see ``trust/rules.py``."""


@dataclass(frozen=True)
class Moments:
    """Of the continuous coordinates of the full posterior."""

    mean: np.ndarray
    covariance: np.ndarray
    ess: float


@dataclass(frozen=True)
class Problem:
    """A model, its data, its reference, and the coresets that are made for it."""

    model: cm.Model
    data: Any
    reference: Moments
    sizes: tuple[int, ...]
    fold: Callable[[Draws], Draws] = unchanged
    initvals: Any = None


def gaussian(folder: Path, data: Path | None) -> Problem:
    """Gaussian location, d = 10, N = 10 000."""
    del folder, data
    rows = np.random.default_rng(0).normal(size=(10_000, 10))
    with jax.enable_x64(True):
        mean, variance = coreset_posterior(rows, np.ones(len(rows)))
    exact = Moments(np.asarray(mean), float(variance) * np.eye(10), math.inf)
    return Problem(cm.models.gaussian_location(10), rows, exact, (12, 25, 50, 100))


def of_the_paper(name: str, sizes: tuple[int, ...], folder: Path, data: Path | None) -> Problem:
    """An experiment of the paper on its own number of rows, with the reference that the repository holds."""
    del folder
    case = CASES[name](data, None)
    if not (PAPER / f"{key_of(case, 12_000)}.npz").exists():
        raise FileNotFoundError(f"no reference of {name} in {PAPER}: the data are other ones")
    made = reference(case, 12_000, PAPER)
    moments = Moments(made.mean, made.covariance, made.checks["min_ess"])
    return Problem(case.model, case.data, moments, sizes, initvals=case.start)


def small_problem(name: str) -> tuple[cm.Model, Any]:
    """The problems beyond Laplace with fewer rows and parameters."""
    rng = np.random.default_rng(DATA_SEED)
    if name == "hierarchical-logistic-regression":
        data = cm.models.hierarchical_logistic_regression_data(rng, SMALL, num_groups=20)
        return cm.models.hierarchical_logistic_regression(3, 20), data
    if name == "bradley-terry":
        return cm.models.bradley_terry(20), cm.models.bradley_terry_data(rng, SMALL, num_players=20)
    if name == "gaussian-mixture":
        return cm.models.gaussian_mixture(2), cm.models.gaussian_mixture_data(rng, SMALL)
    return cm.models.unidentified_regression(), cm.models.unidentified_regression_data(rng, SMALL)


def beyond_laplace(name: str, sizes: tuple[int, ...], folder: Path, data: Path | None) -> Problem:
    """One of them, folded onto one of its symmetric copies."""
    del data
    problem = replace(PROBLEMS[name], make=partial(small_problem, name))
    with jax.enable_x64(True):
        model, rows = problem.make()
        path = folder / f"trust-{name}-{SMALL}.npz"
        if not path.exists():
            settings = Settings(draws=1_500, tune=700, target_accept=problem.target_accept)
            drawn = sample(problem, model, rows, settings)
            chains = convergence(problem, drawn.draws)
            if chains.rhat > 1.01:
                raise RuntimeError(f"the reference of {name} has R-hat {chains.rhat:.3f}")
            values = continuous(problem.fold(drawn.draws))
            pooled = values.reshape(-1, values.shape[-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, mean=pooled.mean(axis=0), covariance=np.cov(pooled, rowvar=False), ess=chains.ess)
    with np.load(path) as stored:
        moments = Moments(stored["mean"], stored["covariance"], float(stored["ess"]))
    return Problem(model, rows, moments, sizes, fold=problem.fold)


MAKE: dict[str, Callable[[Path, Path | None], Problem]] = {
    "gaussian": gaussian,
    "unidentified-regression": partial(beyond_laplace, "unidentified-regression", (10, 20, 40)),
    "bradley-terry": partial(beyond_laplace, "bradley-terry", (100, 200, 400)),
    "poisson": partial(of_the_paper, "poisson", (50, 100, 200)),
    "sparse": partial(of_the_paper, "sparse", (50, 100)),
    "hierarchical-logistic-regression": partial(beyond_laplace, "hierarchical-logistic-regression", (100, 200, 400)),
    "linear": partial(of_the_paper, "linear", (50, 100)),
    "logistic": partial(of_the_paper, "logistic", (100, 200)),
    "gaussian-mixture": partial(beyond_laplace, "gaussian-mixture", (10, 20, 40)),
}


def constructions(problem: Problem) -> Iterator[tuple[str, int]]:
    """What is made of a problem, and with how many rows."""
    for size in problem.sizes:
        yield "default", size
        yield "random-rows", size
    yield "uniform", problem.sizes[-1]
    yield "tripled", problem.sizes[-1]


def make_fit(problem: Problem, construction: str, size: int, seed: int) -> cm.Fit:
    """One construction, without its warnings."""
    fit = partial(
        cm.fit, problem.model, problem.data, draws=DRAWS, chains=CHAINS, random_seed=seed, initvals=problem.initvals,
        progressbar=False,
    )  # fmt: skip
    selection = None if construction == "default" else cm.selection.Uniform()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if construction == "uniform":
            return fit(coreset_size=size, method=cm.Uniform(), selection=selection)
        made = fit(coreset_size=size, selection=selection)
        if construction != "tripled":
            return made
        given = cm.selection.Given(made.coreset.indices, 3.0 * made.coreset.weights)
        return fit(selection=given, method=cm.Uniform())


def measure(problem: Problem, construction: str, size: int, seed: int) -> dict[str, Any]:
    """One fit, its true distance and what ``trust`` says."""
    began = time.process_time()
    try:
        made = make_fit(problem, construction, size, seed)
    except (cm.InputError, cm.RunError) as error:
        return {"failure": str(error).replace("\n", " ")[:160]}
    draws = continuous(problem.fold(draws_of(made)))
    dimension = draws.shape[-1]
    raw = two_moment_kl(draws, problem.reference.mean, problem.reference.covariance)
    noise = two_moment_kl_floor(dimension, 1.0 / (1.0 / min_bulk_ess(draws) + 1.0 / problem.reference.ess))
    judged = made.trust()
    quality = sampling_quality(made.tree)
    return {
        **{name: getattr(judged, name) for name in FIELDS if hasattr(judged, name)},
        "rows": made.coreset.num_rows,
        "dimension": dimension,
        "true_kl": max(raw - noise, 0.0),
        "noise": noise,
        "half_variance": made.kl_estimate,
        "rhat": quality.rhat,
        "ess": quality.ess,
        "num_diverging": quality.num_diverging,
        "cpu_seconds": time.process_time() - began,
    }


def number(row: dict[str, str], name: str) -> float:
    """A number of the file; NaN if it is missing."""
    return float(row[name]) if row.get(name) else math.nan


def findings_of(row: dict[str, str]) -> list[Finding]:
    """The recorded numbers under the rules as they are now."""
    value = partial(number, row)
    estimate, num_draws = value("kl_estimate"), int(value("num_draws"))
    quality = SamplingQuality(CHAINS, DRAWS, value("ess"), "", value("rhat"), "", int(value("num_diverging")))
    is_relevant = estimate > rules.NEGLIGIBLE
    return [
        rules.distance(estimate, num_draws),
        rules.tails(value("pareto_k"), value("effective_draws"), num_draws, matters=is_relevant),
        rules.agreement(
            value("rhat_across_coresets"),
            value("largest_shift"),
            "",
            2,
            "a failed fit",
            kl_of_others=value("kl_of_others"),
        ),
        rules.rows(value("effective_rows"), int(value("dimension")), int(value("rows"))),
        rules.reserve(value("size_sensitivity"), int(row["coreset_size"]) // 2, "a failed fit", matters=is_relevant),
        rules.sampling(quality),
    ]


def true_level(row: dict[str, str]) -> str:
    """The level that the true distance deserves."""
    distance = number(row, "true_kl")
    return GOOD if distance < TRUE_GOOD else CARE if distance <= TRUE_BAD else BAD


def table(heading: list[str], rows: list[list[str]]) -> list[str]:
    """Markdown."""
    return ["| " + " | ".join(line) + " |" for line in (heading, ["---"] * len(heading), *rows)]


def confusion(rows: list[dict[str, str]], level_of: Callable[[dict[str, str]], str]) -> list[list[str]]:
    """Counts of verdicts, one line for each band of true distances."""
    bands = {GOOD: f"below {TRUE_GOOD:g}", CARE: f"{TRUE_GOOD:g} to {TRUE_BAD:g}", BAD: f"above {TRUE_BAD:g}"}
    return [
        [band, *(str(sum(true_level(row) == true and level_of(row) == said for row in rows)) for said in bands)]
        for true, band in bands.items()
    ]


def write_page() -> None:
    """The confusion table of the verdict, what each finding alone would have said, and the runs themselves."""
    rows = [row for row in existing_rows() if not row["failure"]]
    judged = {id(row): findings_of(row) for row in rows}
    names = [finding.name for finding in judged[id(rows[0])]]
    verdict = {key: worst(finding.level for finding in findings) for key, findings in judged.items()}
    lines = [BEGIN, "", f"{len(rows)} runs. True KL in nats against the verdict:", ""]
    lines += table(["true KL", GOOD, CARE, BAD], confusion(rows, lambda row: verdict[id(row)]))
    lines += ["", "What each finding would have said alone, as counts of good / care / do not use:", ""]
    alone = []
    for place, name in enumerate(names):
        counts = confusion(rows, lambda row, place=place: judged[id(row)][place].level)
        alone.append([name, *(" / ".join(line[1:]) for line in counts)])
    lines += table(["finding", *(f"true KL {line[0]}" for line in confusion([], lambda row: GOOD))], alone)
    lines += ["", "The runs ([trust.csv](benchmarks/trust.csv) has all numbers):", ""]
    cells = []
    for row in rows:
        shown = (
            "true_kl", "half_variance", "kl_estimate", "pareto_k", "rhat_across_coresets", "effective_rows",
            "size_sensitivity",
        )  # fmt: skip
        cells.append(
            [row["problem"], row["construction"], row["coreset_size"], *(f"{number(row, name):.2g}" for name in shown)]
        )
        cells[-1].append(verdict[id(row)])
    lines += table(
        [
            "problem",
            "coreset",
            "M",
            "true KL",
            "half variance",
            "KL estimate",
            "k-hat",
            "R-hat",
            "rows",
            "half",
            "verdict",
        ],
        cells,
    )
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + "\n".join([*lines, "", END]) + rest.partition(END)[2])


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
        short = {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
        writer.writerow({field: short.get(field, "") for field in FIELDS})


def main() -> int:
    """Measure what is missing, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", nargs="*", choices=list(MAKE), default=list(MAKE), metavar="NAME")
    parser.add_argument("--construction", nargs="*", help="only these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--references", type=Path, default=Path("references"), help="folder of references to be made")
    parser.add_argument("--data", type=Path, help="the folder with poisson_reg.csv")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    options = parser.parse_args()
    if options.table:
        write_page()
        return 0
    done = {(row["problem"], row["construction"], row["coreset_size"], row["seed"]) for row in existing_rows()}
    made = cache(lambda name: MAKE[name](options.references, options.data))
    for seed in range(options.seeds):
        for name in options.problem:
            for construction, size in constructions(made(name)):
                is_wanted = not options.construction or construction in options.construction
                if not is_wanted or (name, construction, str(size), str(seed)) in done:
                    continue
                row = measure(made(name), construction, size, seed)
                labels = {"problem": name, "construction": construction, "coreset_size": size, "seed": seed}
                append({**labels, **row})
                print(labels, {key: row.get(key) for key in ("true_kl", "kl_estimate", "failure")}, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
