"""Ranks as a table and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coreset_mcmc.report.plots import import_pyplot
from coreset_mcmc_benchmarks.calibration.models import MODELS
from coreset_mcmc_benchmarks.calibration.ranks import BINS, BROKEN, KEPT, coverage, uniformity
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.runs_table import RunsTable

FIELDS = ("model", "construction", "replication", "parameter", "rank", "failure")
DEFAULT = "default"
ALARM = 0.01
"""Chance of a false alarm, for all parameters of a model together."""

Ranks = dict[str, np.ndarray]


def ranks_table(folder: Path) -> RunsTable:
    """One row for each parameter of a replication."""
    return RunsTable(folder / "calibration.csv", FIELDS, ("model", "construction", "replication"))


def collected(folder: Path) -> dict[tuple[str, str], Ranks]:
    """By model and construction, the ranks of each parameter."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for row in ranks_table(folder).rows():
        if not row["failure"]:
            place = found.setdefault((row["model"], row["construction"]), {})
            place.setdefault(row["parameter"], []).append(int(row["rank"]))
    return {key: {name: np.array(values) for name, values in ranks.items()} for key, ranks in found.items()}


def smallest_p(ranks: Ranks) -> float:
    """Over the parameters, corrected for their number."""
    return min(1.0, len(ranks) * min(uniformity(values) for values in ranks.values()))


def write_page(folder: Path) -> Path:
    """The table; the picture lies beside it."""
    found = collected(folder)
    failures = sum(bool(row["failure"]) for row in ranks_table(folder).rows())
    lines = []
    for (name, construction), ranks in found.items():
        levels = [coverage(values) for values in ranks.values()]
        p = smallest_p(ranks)
        lines.append([
            name, MODELS[name].words, construction, str(len(next(iter(ranks.values())))), str(len(ranks)), f"{p:.2g}",
            f"{min(levels):.2f} to {max(levels):.2f}", "uniform" if p > ALARM else "not uniform",
        ])  # fmt: skip
    heads = ["model", "what", "weights", "replications", "parameters", "p", "90 % intervals cover", "ranks"]
    text = [
        "# Calibration of the whole pipeline", "",
        "`coreset-mcmc bench calibration` draws parameters from the prior and rows from the parameters, fits, and "
        f"ranks the parameters among {KEPT} draws; p is that of a chi-square test over {BINS} bins, the smallest "
        f'over the parameters times their number. "{BROKEN}" has the weights times three and must fail. '
        f"{failures} fits failed.", "",
        *table_lines(heads, lines), "", "![ranks](calibration.png)", "",
    ]  # fmt: skip
    path = folder / "calibration.md"
    path.write_text("\n".join(text))
    return path


def draw(folder: Path) -> Path:
    """Ranks of all parameters of a model in one histogram, the twin beside it."""
    pyplot = import_pyplot()
    found = collected(folder)
    names = list(dict.fromkeys(name for name, _ in found))
    figure, axes = pyplot.subplots(2, max(len(names), 2), figsize=(2.0 * max(len(names), 2), 3.6), sharex=True)
    for row, construction in enumerate((DEFAULT, BROKEN)):
        for column, name in enumerate(names):
            ranks = found.get((name, construction), {})
            pooled = np.concatenate([np.zeros(0), *ranks.values()])
            axes[row, column].hist(pooled, bins=np.linspace(0, KEPT + 1, BINS + 1), color="#30638e")
            axes[row, column].axhline(len(pooled) / BINS, color="#d1495b", linewidth=1)
            axes[row, column].set(yticks=[], title=name if row == 0 else "weights tripled" if len(pooled) else "")
            axes[row, column].title.set_fontsize(8)
    figure.tight_layout()
    path = folder / "calibration.png"
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)
    return path
