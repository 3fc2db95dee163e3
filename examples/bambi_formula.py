"""A Bambi formula, unchanged, on a coreset: counts, a factor and an interaction.

python examples/bambi_formula.py [--quick] [--rows 30000] [--output bambi_formula.png]
"""

from __future__ import annotations

import argparse

import bambi as bmb
import matplotlib
import numpy as np
import pandas as pd

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot

LEVEL = {"bus": 0.2, "car": -0.3, "walk": 0.6}
"""Log of the mean number of delays a month, by means of transport."""


def simulate(num_rows: int) -> pd.DataFrame:
    """Delays of commuters: a count with distance, means of transport and an interaction."""
    rng = np.random.default_rng(0)
    means = rng.choice(list(LEVEL), size=num_rows)
    distance = rng.gamma(4.0, 2.0, size=num_rows)
    rate = np.exp(np.vectorize(LEVEL.get)(means) + np.where(means == "walk", 0.12, 0.04) * (distance - 8))
    return pd.DataFrame({"delays": rng.poisson(rate), "distance": distance, "means": means})


def main(arguments: list[str] | None = None) -> None:
    """Fit, print, plot, and write down the coreset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--output", default="bambi_formula.png")
    options = parser.parse_args(arguments)
    data = simulate(2_000 if options.quick else options.rows)
    model = bmb.Model("delays ~ means * distance", data, family="poisson")
    fit = cm.fit(
        cm.from_bambi(model),
        coreset_size=100 if options.quick else 500,
        draws=200 if options.quick else 1000,
        tune=100 if options.quick else 500,
        random_seed=0,
        progressbar=not options.quick,
    )
    print(fit.summary().to_string())
    print(fit)
    rows = fit.coreset.to_frame(data)
    print(rows[rows["weight"] > 0].head().to_string(), "\n...")

    posterior = fit.posterior.stack(sample=("chain", "draw"))
    grid = np.linspace(1, 20, 60)
    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for number, name in enumerate(LEVEL):
        level, slope = posterior["Intercept"], posterior["distance"]
        if name in posterior["means_dim"]:
            level = level + posterior["means"].sel(means_dim=name)
            slope = slope + posterior["means:distance"].sel({"means:distance_dim": name})
        rate = np.exp(level.to_numpy()[:, None] + slope.to_numpy()[:, None] * grid)
        low, middle, high = np.quantile(rate, [0.03, 0.5, 0.97], axis=0)
        color = f"C{number}"
        axes.fill_between(grid, low, high, color=color, alpha=0.3)
        axes.plot(grid, middle, color=color, label=name)
        mine = data[data["means"] == name]
        dots = mine.groupby(pd.qcut(mine["distance"], 12), observed=True)[["distance", "delays"]].mean()
        axes.plot(dots["distance"], dots["delays"], "o", color=color)
    axes.set_xlim(grid[0], grid[-1])
    axes.set_xlabel("distance")
    axes.set_ylabel("delays a month (dots: all rows)")
    axes.set_title(f"{fit.coreset.size} of {fit.coreset.num_rows} rows, estimated KL {fit.kl_estimate:.2g} nats")
    axes.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
