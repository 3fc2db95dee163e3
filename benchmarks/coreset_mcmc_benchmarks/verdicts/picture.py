"""True against estimated KL of the zoo, one point for each run, coloured by its verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coreset_mcmc.verdict import BAD, CARE, GOOD
from coreset_mcmc_benchmarks.verdicts.page import number
from coreset_mcmc_benchmarks.verdicts.table import zoo_table
from coreset_mcmc_benchmarks.verdicts.zoo_page import OPTIMISTIC, has_draws

SMALLEST, LARGEST = 1e-4, 1e6
COLOURS = {GOOD: "#1b7837", CARE: "#e08214", BAD: "#b2182b"}


def draw_zoo(folder: Path) -> Path:
    """Numbers outside of the picture lie on its border."""
    import matplotlib  # noqa: PLC0415 - a page without a picture needs none of it

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    rows = [row for row in zoo_table(folder).rows() if has_draws(row)]
    figure, axes = pyplot.subplots(figsize=(6, 5))
    for said, colour in COLOURS.items():
        points = np.array(
            [[number(row, "kl_estimate"), number(row, "true_kl")] for row in rows if row["verdict"] == said]
        ).reshape(-1, 2)
        inside = np.clip(np.nan_to_num(points, nan=LARGEST, posinf=LARGEST), SMALLEST, LARGEST)
        axes.scatter(*inside.T, s=22, color=colour, label=f"{said} ({len(points)})", alpha=0.8)
    line = np.array([SMALLEST, LARGEST])
    axes.plot(line, line, color="grey", linewidth=0.8)
    axes.plot(line, OPTIMISTIC * line, color="grey", linewidth=0.8, linestyle=":")
    axes.axhline(0.1, color="grey", linewidth=0.8, linestyle="--")
    axes.set(
        xscale="log", yscale="log", xlabel="estimated KL, nats", ylabel="true KL, nats",
        xlim=(SMALLEST / 2, LARGEST * 2), ylim=(SMALLEST / 2, LARGEST * 2),
    )  # fmt: skip
    axes.legend(title="verdict", loc="lower right")
    figure.tight_layout()
    path = folder / "trust_zoo.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
    return path
