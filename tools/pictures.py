"""Pictures of the site that are not of the tutorial: ``python -m tools.pictures`` draws them into ``docs/images``.

All are of the tutorial's model: cancellations of real flights against visibility, two parameters, so that posteriors
can be drawn as contours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.datasets import flights_with_weather

matplotlib.use("agg")
from matplotlib import pyplot

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = 100
STEPS = (0, 30, 300, 3_000, 30_000)
"""Updates of the weights after which a panel is drawn."""
LEVELS, SLOPES = (-4.45, -3.65), (-0.32, 0.05)
FALLS = [-4.5, -2.0, -0.5]
"""Of the log-posterior from its top: one, two and three standard deviations of a Gaussian."""
BLUE, RED, GREY = "tab:blue", "tab:red", "0.45"


def log_prior(position: Any) -> Any:
    """Wide normal distributions."""
    return -0.5 * (position["level"] / 5) ** 2 - 0.5 * position["slope"] ** 2


def log_likelihood(position: Any, rows: Any) -> Any:
    """Of a cancellation, given the visibility in miles."""
    log_odds = position["level"] + position["slope"] * (rows["miles"] - 10)
    return rows["cancelled"] * log_odds - jnp.logaddexp(0.0, log_odds)


def flights() -> dict[str, np.ndarray]:
    """Every flight: visibility and outcome."""
    table = flights_with_weather()
    return {"miles": table["visib"].to_numpy(float), "cancelled": table["dep_time"].isna().to_numpy(float)}


def height(rows: dict[str, np.ndarray], weights: np.ndarray, levels: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The log-posterior of weighted rows, with 0 at the top."""
    total = np.asarray(log_prior({"level": levels, "slope": slopes}), dtype=float)
    for mile in np.unique(rows["miles"]):
        for outcome in (0.0, 1.0):
            weight = np.sum(weights[(rows["miles"] == mile) & (rows["cancelled"] == outcome)])
            log_odds = levels + slopes * (mile - 10)
            total += weight * (outcome * log_odds - np.logaddexp(0.0, log_odds))
    result: np.ndarray = total - total.max()
    return result


def contours(axes: Any, rows: dict[str, np.ndarray], weights: np.ndarray, colour: str) -> None:
    """Of the posterior of weighted rows."""
    levels, slopes = np.meshgrid(np.linspace(*LEVELS, 240), np.linspace(*SLOPES, 240))
    axes.contour(levels, slopes, height(rows, weights, levels, slopes), levels=FALLS, colors=colour, linestyles="solid")


def strip(data: dict[str, np.ndarray]) -> None:
    """Weights move, and the posterior of the coreset with them."""
    model = cm.Model(log_prior, log_likelihood, {"level": np.array(-4.0), "slope": np.array(-0.2)}, name="strip")
    figure, panels = pyplot.subplots(2, len(STEPS), figsize=(12, 4.4), height_ratios=[3, 2], layout="constrained")
    for (upper, lower), count in zip(panels.T, STEPS, strict=True):
        coreset = trained(model, data, count)
        contours(upper, data, np.ones(len(data["miles"])), GREY)
        contours(upper, dict(coreset.columns), coreset.weights, BLUE)
        upper.set_title("before training" if count == 0 else f"{count:,} updates", fontsize=10)
        order = np.lexsort((coreset.columns["miles"], coreset.columns["cancelled"]))
        is_cancelled = coreset.columns["cancelled"][order] == 1
        lower.bar(np.arange(SIZE), coreset.weights[order], width=1.0, color=np.where(is_cancelled, RED, BLUE))
        lower.set_yscale("symlog", linthresh=10)
        lower.set_ylim(0, 2e5)
        lower.set_xticks([SIZE / 4, 3 * SIZE / 4], ["flew", "cancelled"])
        upper.tick_params(labelsize=7)
        lower.tick_params(labelsize=8)
    panels[0, 0].set(ylabel="slope of a mile")
    panels[1, 0].set(ylabel="weights of 100 flights")
    save(figure, "strip.png")


def trained(model: cm.Model, data: dict[str, np.ndarray], num_iterations: int) -> cm.Coreset:
    """The published algorithm, stopped after so many updates; the same seed takes the same way."""
    method: Any = cm.Uniform(cm.kernels.RandomWalk(0.02))
    if num_iterations:
        method = cm.CoresetMCMC(
            kernel=cm.kernels.HitAndRunSlice(width=0.1),
            subsample_size=2_000,
            num_iterations=num_iterations,
            num_chains=10,
        )
    fit = cm.fit(
        model,
        data,
        method=method,
        coreset_size=SIZE,
        selection=cm.selection.Stratified(by="cancelled"),
        draws=20,
        tune=100,
        chains=2,
        random_seed=5,
        progressbar=False,
    )
    return fit.coreset


def sums(data: dict[str, np.ndarray]) -> None:
    """A posterior depends on the sum of the curves of its rows, and few curves can have the same sum."""
    model = cm.Model(log_prior, log_likelihood, {"level": np.array(-4.0), "slope": np.array(-0.2)}, name="sums")
    fit = cm.fit(model, data, coreset_size=20, random_seed=1, draws=100, progressbar=False)
    slopes = np.linspace(*SLOPES, 120)
    level = np.full_like(slopes, -4.05)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for mile, outcome in ((0.25, 1.0), (1.0, 0.0), (2.5, 1.0), (6.0, 0.0)):
        log_odds = level + slopes * (mile - 10)
        curve = outcome * log_odds - np.logaddexp(0.0, log_odds)
        left.plot(slopes, curve - curve.max(), color=RED if outcome else BLUE)
    left.set(title="four flights (red: cancelled)", xlabel="slope of a mile", ylabel="log-likelihood")
    everything = height(data, np.ones(len(data["miles"])), level, slopes)
    chosen = np.random.default_rng(1).choice(len(data["miles"]), 1_000, replace=False)
    at_random = {name: values[chosen] for name, values in data.items()}
    right.plot(slopes, everything, color="black", linewidth=4, alpha=0.5, label="all 297 924 flights")
    coreset = height(dict(fit.coreset.columns), fit.coreset.weights, level, slopes)
    right.plot(slopes, coreset, "--", color=BLUE, label="20 weighted flights")
    right.plot(slopes, height(at_random, np.full(1_000, 297.924), level, slopes), color=RED, label="1 000 at random")
    right.set(title="their sums", xlabel="slope of a mile", ylim=(-60, 5))
    right.legend(frameon=False, fontsize=8)
    save(figure, "sums.png")


def save(figure: Any, name: str) -> None:
    """As a small file that is the same for the same picture."""
    figure.savefig(IMAGES / name, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def main() -> None:
    """Draw all of them."""
    data = flights()
    sums(data)
    strip(data)


if __name__ == "__main__":
    main()
