"""Pictures of the site that are not of the tutorial: ``python -m tools.pictures`` draws them into ``docs/images``.

All are of the tutorial's models of the cancellations of real flights.
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
ROUNDS = (1, 3, 5, 6, 12)
"""Rounds of training after which a panel is drawn; the first one does not move the weights yet."""
FORMULA = "cancelled ~ hour + distance + temp + wind_speed + precip + visib"
SLOPES = (-0.32, 0.05)
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


def strip() -> None:
    """Weights move, and the posterior of the coreset with them: seven parameters, of which two are shown.

    The default method without its search for the mode, from weights that are a fiftieth of what they should be, with so
    few draws for each solve (16 instead of 400) that it takes several rounds.
    """
    table = flights_with_weather()
    table["cancelled"] = table["dep_time"].isna().astype(float)
    model = cm.from_formula(FORMULA, table, family="bernoulli")
    full = cm.fit(model, random_seed=1, progressbar=False).posterior
    outcome, miles = table["cancelled"].to_numpy(), table["visib"].to_numpy(float)
    start = cm.selection.Stratified(by=outcome).select(np.random.default_rng(5), None, len(table), SIZE)
    given = cm.selection.Given(start.indices, start.weights / 50)
    figure, panels = pyplot.subplots(2, len(ROUNDS), figsize=(12, 4.6), height_ratios=[3, 2], layout="constrained")
    for (upper, lower), count in zip(panels.T, ROUNDS, strict=True):
        fit = trained(model, given, count)
        draw_posterior(upper, fit, full)
        upper.set_title("before training" if count == ROUNDS[0] else f"round {count}", fontsize=10)
        rows, weights = fit.coreset.indices, fit.coreset.weights
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, SIZE)
        lower.scatter(miles[rows] + jitter, weights, s=8, color=np.where(outcome[rows] == 1, RED, BLUE), alpha=0.7)
        lower.set_yscale("symlog", linthresh=1)
        lower.set(ylim=(-0.2, 1e5), xlabel="visibility in miles")
        lower.tick_params(labelsize=7)
    panels[0, 0].set(ylabel="effect of wind speed")
    panels[1, 0].set(ylabel="weight")
    save(figure, "strip.png")


def draw_posterior(axes: Any, fit: cm.Fit, full: Any) -> None:
    """Draws of the coreset posterior (blue) over those of all flights (grey); beside them the same from near by."""
    near = axes.inset_axes([0.52, 0.55, 0.46, 0.43])
    for place, size in ((axes, 2), (near, 2)):
        for draws, colour in ((full, GREY), (fit.posterior, BLUE)):
            values = [draws[name].to_numpy().ravel()[:400] for name in ("visib", "wind_speed")]
            place.plot(*values, ".", markersize=size, color=colour)
    axes.set(xlim=(-0.85, 0.05), ylim=(0.02, 0.27), xlabel="effect of visibility")
    near.set(xlim=(-0.225, -0.175), ylim=(0.044, 0.065), xticks=[], yticks=[])
    axes.indicate_inset_zoom(near, edgecolor="black")
    axes.tick_params(labelsize=7)


def trained(model: cm.Model, given: cm.selection.Given, num_rounds: int) -> cm.Fit:
    """Stopped after so many rounds; the same seed takes the same way."""
    method = cm.LeastSquares(
        hot_start=False,
        num_rounds=num_rounds,
        num_draws=16,
        gaussian_term=False,
        chooses_rows=False,
        subsample_size=None,
    )
    fit = cm.fit(
        model,
        method=method,
        coreset_size=SIZE,
        selection=given,
        draws=200,
        tune=100,
        chains=2,
        random_seed=5,
        progressbar=False,
    )
    print(
        f"round {num_rounds}: estimated KL {fit.kl_estimate:.3g}, sum of the weights {fit.coreset.weights.sum():,.0f}"
    )
    return fit


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
    sums(flights())
    strip()


if __name__ == "__main__":
    main()
