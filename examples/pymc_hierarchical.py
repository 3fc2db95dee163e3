"""A PyMC hierarchical model, unchanged, on a coreset: radon in houses of many counties, partially pooled.

python examples/pymc_hierarchical.py [--quick] [--rows 50000] [--output pymc_hierarchical.png]
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np
import pymc as pm

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot

NUM_COUNTIES = 12


def simulate(num_rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Houses in counties of very different size, and the level of each county."""
    rng = np.random.default_rng(0)
    level = rng.normal(1.3, 0.4, size=NUM_COUNTIES)
    share = 0.6 ** np.arange(NUM_COUNTIES)
    county = rng.choice(NUM_COUNTIES, size=num_rows, p=share / share.sum())
    floor = rng.integers(2, size=num_rows).astype(float)
    log_radon = rng.normal(level[county] - 0.6 * floor, 0.8)
    return {"county": county, "floor": floor, "log_radon": log_radon}, level


def make_model(data: dict[str, np.ndarray]) -> pm.Model:
    """Varying intercepts as one writes them in PyMC."""
    with pm.Model(coords={"county": [f"county {number}" for number in range(NUM_COUNTIES)]}) as model:
        floor = pm.Data("floor", data["floor"], dims="house")
        county = pm.Data("county_of_house", data["county"], dims="house")
        mean = pm.Normal("mean", 0, 2)
        spread = pm.HalfNormal("spread", 1)
        level = pm.Normal("level", mean, spread, dims="county")
        basement = pm.Normal("floor_effect", 0, 1)
        noise = pm.HalfNormal("noise", 1)
        pm.Deterministic("radon", pm.math.exp(level), dims="county")
        pm.Normal("log_radon", level[county] + basement * floor, noise, observed=data["log_radon"], dims="house")
    return model


def main(arguments: list[str] | None = None) -> None:
    """Fit, print, plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--output", default="pymc_hierarchical.png")
    options = parser.parse_args(arguments)
    data, truth = simulate(3_000 if options.quick else options.rows)
    fit = cm.fit(
        cm.from_pymc(make_model(data)),
        coreset_size=150 if options.quick else 500,
        selection=cm.selection.Stratified("county_of_house"),  # rare counties must have rows too
        draws=200 if options.quick else 1000,
        tune=100 if options.quick else 500,
        random_seed=0,
        progressbar=not options.quick,
    )
    print(fit.summary(var_names=["mean", "spread", "level", "floor_effect", "noise"]).to_string())
    print(fit)

    levels = fit.posterior["level"].stack(sample=("chain", "draw"))
    low, middle, high = levels.quantile([0.03, 0.5, 0.97], "sample").to_numpy()
    alone = [
        data["log_radon"][(data["county"] == number) & (data["floor"] == 0)].mean() for number in range(NUM_COUNTIES)
    ]
    houses = np.bincount(data["county"], minlength=NUM_COUNTIES)
    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    places = np.arange(NUM_COUNTIES)
    axes.vlines(places, low, high, color="C0", linewidth=4, alpha=0.5, label="94 % interval, coreset posterior")
    axes.plot(places, middle, "o", color="C0")
    axes.plot(places, truth, "k_", markersize=14, label="truth")
    axes.plot(places, alone, "x", color="C1", label="mean of the county's own houses")
    axes.axhline(float(fit.posterior["mean"].mean()), color="0.8", zorder=0)
    axes.set_xticks(places, [f"{count:,}" for count in houses], rotation=45)
    axes.set_xlabel("houses in the county")
    axes.set_ylabel("log radon, basement")
    axes.set_title(f"{fit.coreset.size} of {fit.coreset.num_rows} houses, estimated KL {fit.kl_estimate:.2g} nats")
    axes.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
