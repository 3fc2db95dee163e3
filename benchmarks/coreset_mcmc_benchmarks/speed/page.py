"""The comparison as a page and a picture, made from the table alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.speed.contestants import (
    CONTESTANTS,
    MOST_ROWS_FOR_PYMC,
    MOST_ROWS_FOR_SUBSAMPLING,
    OTHER_LIBRARIES,
)
from coreset_mcmc_benchmarks.speed.effort import EFFECTIVE_DRAWS, MANY_ROWS
from coreset_mcmc_benchmarks.speed.goals import goals_section
from coreset_mcmc_benchmarks.speed.idle import BUSY, IDLE, MOST_REPEATS
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS
from coreset_mcmc_benchmarks.speed.table import TABLE, read_table

PAGE, PICTURE = "speed.md", "speed.png"
GOOD_KL = 0.1
"""Nats beyond the noise of the comparison; draws further away than this are no draws of the posterior."""
OURS = ("ours",)
GROWING = ("simulated-1e5", "simulated-1e6", "simulated-1e7")
NUMBERS = [
    "rows", "dimension", "coreset_size", "training_seconds", "training_seconds_cold", "seconds_to_effective", "kl",
    "kl_floor", "js", "passes", "peak_megabytes", "compile_seconds", "import_seconds", "seconds", "draws", "min_ess",
    "other_load",
]  # fmt: skip
RANGED = ("training_seconds", "training_seconds_cold", "seconds_to_effective", "kl")
"""Columns whose smallest and largest value stand beside the median."""
HEADINGS = (
    "contestant", "M", "train s", "cold", "to 10 000", "KL", "noise", "passes", "MB", "compile s", "NUTS / this",
    "published / this", "remarks",
)  # fmt: skip
INTRODUCTION = f"""# How long it takes

Made from [{TABLE}]({TABLE}) by `coreset-mcmc bench speed`; `--figures-only` makes this page again. Every run is a
process of its own, one after the other; its clock starts when the data are in memory and no library is imported, and no
compiled program is kept from an earlier run. Repeats are interleaved: on each problem everyone runs with seed 1 before
anyone runs with seed 2. Numbers are medians over seeds, with the smallest and the largest in brackets where there are
several. All contestants compute in double precision, on two cores.

- **train s**: training, tuning or search, compilation apart; **cold** with it, ours with that of sampling, too, which
  is compiled beside.
- **to 10 000**: seconds in all, import and compilation included, to {EFFECTIVE_DRAWS:,} effective draws, by the
  smallest bulk ESS. *scaled*: fewer draws were made, and the time of sampling (nothing else) is multiplied.
- **KL**: two-moment KL to a reference on all rows; *noise* is what as many independent draws of the full posterior
  would score on average, given the draws behind the reference. *est.*: there is no reference, and the estimated KL of
  the coreset stands instead. JS: Jensen-Shannon divergence of the discrete coordinates.
- **MB**: the most memory at one time, worker processes included, before the draws are judged.
- **compile s**: also what was compiled on another core meanwhile; empty where the library does not tell.
- **passes**: log-likelihoods of single rows over N; a gradient counts as one.
- **NUTS / this**: ratio of the columns *to 10 000*. **published / this**: ratio of the columns *train s*.
- Posteriors with symmetric copies are folded onto one of them, for every contestant.
- **busy**: before a run the machine is waited for until other processes use less than {IDLE} cores; a run during which
  they used more than {BUSY} on average is made again, up to {MOST_REPEATS} times. What stayed disturbed is marked.
"""
CONTESTANTS_NOTE = f"""## Who runs what

- Samplers on all rows move two chains at the same time, one on each core, with their own defaults but for the number of
  steps, which the remarks tell. NumPyro's NUTS has a dense mass matrix; those of BlackJAX, nutpie and PyMC are
  diagonal, their default. Above {MANY_ROWS:,} rows NUTS is given the mode, the covariance and a step size for nothing.
- The samplers of BlackJAX, nutpie and PyMC, ADVI and statsmodels run on {", ".join(OTHER_LIBRARIES)}. PyMC's own
  sampler and nutpie with Numba, whose gradients take several times as long as those of JAX here, make fewer steps and
  run up to {MOST_ROWS_FOR_PYMC:,} rows. All are as `pip` installs them; PyTensor has then no BLAS to link to, and
  says that conda would provide one.
- The published algorithm, HMCECS and PyMC's own sampler run once on each problem, and everyone once on ten million
  rows: they take long, and no goal of time hangs on them.
- Mean-field ADVI is NumPyro's AutoNormal. It is not corrected, nor is Pathfinder.
- statsmodels' GLM is the floor of a point estimate: maximum likelihood without priors, and draws of the Gaussian
  that its covariance gives. They are no draws of the posterior.
- HMCECS runs up to {MOST_ROWS_FOR_SUBSAMPLING:,} rows: with a Taylor proxy it keeps derivatives of every row, and was
  killed for its memory at a million.
- The size "auto" of `cm.fit` is not run: with 40 to 55 parameters it came to the size, draws and KL of the default.
- Stan is not run: cmdstanpy needs CmdStan, which is not on PyPI, and the one package there that brings a compiler of
  Stan programs, httpstan, compiles each model with a C++ compiler when it runs and serves it over HTTP.
"""


def summarised(folder: Path) -> pd.DataFrame:
    """Medians over the seeds that did not fail, one row for each problem and contestant; texts of the first."""
    table = read_table(folder)
    table = table[table["contestant"].isin(list(CONTESTANTS))]
    rows = []
    for (problem, contestant), runs in table.groupby(["problem", "contestant"], sort=False):
        good = runs[runs["failure"].isna()]
        chosen = good if len(good) else runs
        row = {**chosen.iloc[0].to_dict(), "problem": problem, "contestant": contestant}
        row |= {name: chosen[name].median() for name in NUMBERS}
        row |= {f"{name}_{end}": getattr(chosen[name], end)() for name in RANGED for end in ("min", "max")}
        row["most_other_load"] = chosen["other_load"].max()
        rows.append(row | {"num_runs": len(runs), "num_failed": len(runs) - len(good)})
    return pd.DataFrame(rows)


def write_page(folder: Path) -> Path:
    """Write the page beside the table."""
    table = summarised(folder)
    lines = [
        INTRODUCTION,
        *_unrecorded(table),
        f"![Seconds to {EFFECTIVE_DRAWS:,} effective draws against rows]({PICTURE})",
        "",
    ]
    lines += [*losses(table), "", *goals_section(table), "", *_growth(table), CONTESTANTS_NOTE]
    for name in (name for name in PROBLEMS if name in set(table["problem"])):
        lines += [*_problem_table(table[table["problem"] == name], name), ""]
    lines += ["## Machine", "", *(f"- {text}" for text in pd.unique(table["hardware"].dropna()))]
    lines += [f"- {text}" for text in pd.unique(table["versions"].dropna())]
    path = folder / PAGE
    path.write_text("\n".join(lines) + "\n")
    return path


def _unrecorded(table: pd.DataFrame) -> list[str]:
    """A warning about runs of before the load was recorded, or of a system that does not tell it."""
    unknown = int(table["most_other_load"].isna().sum())
    if not unknown:
        return []
    return [
        f"**The load of the machine is not recorded for {unknown} of {len(table)} lines.** Those made before it was "
        "are single runs, not interleaved;\nof ours only the import of the package and the fit are on their clock, not "
        "what the first fit loads besides; their MB also\ncount the command that started them.",
        "",
    ]


def _problem_table(rows: pd.DataFrame, name: str) -> list[str]:
    size = f"N = {rows['rows'].dropna().iloc[0]:,.0f}" if rows["rows"].notna().any() else ""
    dimension = f", d = {rows['dimension'].dropna().iloc[0]:.0f}" if rows["dimension"].notna().any() else ""
    lines = [f"## {name}: {PROBLEMS[name].title}", "", size + dimension, ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    by_name = {row["contestant"]: row for _, row in rows.iterrows()}
    for contestant in (key for key in CONTESTANTS if key in by_name):
        cells = [CONTESTANTS[contestant].title, *_cells(by_name, contestant)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cells(by_name: dict[str, pd.Series], contestant: str) -> list[str]:
    row = by_name[contestant]
    if row["num_failed"] == row["num_runs"]:
        return [*[""] * (len(HEADINGS) - 2), f"failed: {row['failure']}"]
    remarks = [row[name] for name in ("scaled", "note") if isinstance(row[name], str)]
    if row["num_failed"]:
        remarks.append(f"{row['num_failed']} of {row['num_runs']} failed")
    if row["most_other_load"] > BUSY:
        remarks.append(f"busy: others used {row['most_other_load']:.2g} cores")
    if isinstance(row["warnings"], str):
        remarks.append("it warned")
    return [
        _number(row["coreset_size"]),
        _with_range(row, "training_seconds"),
        _with_range(row, "training_seconds_cold"),
        _with_range(row, "seconds_to_effective"),
        _distance(row),
        _number(row["kl_floor"]),
        _number(row["passes"]),
        _number(row["peak_megabytes"]),
        _number(row["compile_seconds"]),
        _ratio(by_name.get("nuts"), row, "seconds_to_effective"),
        _ratio(by_name.get("published"), row, "training_seconds"),
        "; ".join(remarks),
    ]


def _number(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def _with_range(row: pd.Series, name: str) -> str:
    """The median, and the range if that is another text."""
    ends = [_number(row[f"{name}_{end}"]) for end in ("min", "max")]
    median = _number(row[name])
    return median if set(ends) == {median} else f"{median} ({ends[0]} to {ends[1]})"


def _distance(row: pd.Series) -> str:
    if not np.isfinite(row["kl"]):
        return str(row["kl_kind"]) if isinstance(row["kl_kind"], str) and row["kl_kind"] != "estimated" else ""
    text = _with_range(row, "kl") + (" est." if row["kl_kind"] == "estimated" else "")
    return text + (f", JS {row['js']:.2g}" if np.isfinite(row["js"]) else "")


def _ratio(other: pd.Series | None, row: pd.Series, name: str) -> str:
    if other is None or other["contestant"] == row["contestant"] or not row[name] > 0:
        return ""
    return _number(other[name] / row[name])


def excess(row: pd.Series) -> float:
    """How much of the KL the noise of the comparison does not explain."""
    return float(row["kl"]) - float(np.nan_to_num(row["kl_floor"]))


def _growth(table: pd.DataFrame) -> list[str]:
    """How our time, and that of NUTS, grows with the rows of the simulated problem."""
    lines = []
    for contestant in ("ours", "nuts"):
        rows = table[(table["contestant"] == contestant) & table["problem"].isin(GROWING)]
        rows = rows[np.isfinite(rows["seconds_to_effective"])].sort_values("rows")
        if len(rows) > 1:
            seconds = ", ".join(
                f"{_number(row['seconds_to_effective'])} s at {row['rows']:,.0f}" for _, row in rows.iterrows()
            )
            factor = rows["seconds_to_effective"].iloc[-1] / rows["seconds_to_effective"].iloc[0]
            lines.append(f"- {CONTESTANTS[contestant].title}: {seconds} rows, a factor of {_number(factor)}.")
    return ["## How it grows with the rows", "", *lines, ""] if lines else []


def losses(table: pd.DataFrame) -> list[str]:
    """Every place where someone is faster and good enough, or ours is not good enough, in plain words."""
    lines = ["## Where we lose", ""]
    for name in (name for name in PROBLEMS if name in set(table["problem"])):
        rows = {row["contestant"]: row for _, row in table[table["problem"] == name].iterrows()}
        mine = [rows[key] for key in OURS if key in rows and np.isfinite(rows[key]["seconds_to_effective"])]
        if not mine:
            lines.append(f"- {name}: ours did not finish.")
            continue
        good = [row for row in mine if excess(row) <= GOOD_KL]
        best = min(good or mine, key=lambda row: row["seconds_to_effective"] if good else excess(row))
        if not good:
            lines.append(f"- {name}: ours is {_number(best['kl'])} nats away, more than {GOOD_KL} beyond the noise.")
        for contestant, row in rows.items():
            is_rival = contestant not in OURS and np.isfinite(row["seconds_to_effective"])
            if (
                is_rival
                and excess(row) <= max(GOOD_KL, excess(best))
                and (row["seconds_to_effective"] < best["seconds_to_effective"])
            ):
                lines.append(
                    f"- {name}: {CONTESTANTS[contestant].title} takes {_number(row['seconds_to_effective'])} s at KL "
                    f"{_number(row['kl'])}, ours {_number(best['seconds_to_effective'])} s at {_number(best['kl'])}."
                )  # fmt: skip
    return lines if len(lines) > 2 else [*lines, "Nowhere in this table."]
