"""Pictures of a fit, with matplotlib (extra ``report``).

Functions that take ``axes`` draw into them and leave figures, files and matplotlib's settings to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coreset_mcmc.report.extra import extra
from coreset_mcmc.results.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, ACCENT, FAINT, PAPER = "#1b2a41", "#d1495b", "#9fb3c8", "#ffffff"
CHAIN_COLOURS = ("#2e6f95", "#d1495b", "#e0a030", "#3a9188")
"""Of the first four chains; further ones begin again."""
MOST_POINTS = 250
"""Draws of each chain that a trace shows."""
MOST_BARS = 40


def forest(fit: Fit, variable: str, axes: Axes, labels: Mapping[int, str] | None = None) -> None:
    """Median, 50 % and 95 % intervals of the components of a variable: all, or those that ``labels`` names."""
    draws = fit.posterior[variable].to_numpy()
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    shown = labels or {j: f"{variable}[{j}]" for j in range(flat.shape[1])}
    intervals(flat[:, list(shown)], list(shown.values()), axes, probability=0.95)


def intervals(draws: np.ndarray, names: Sequence[str], axes: Axes, *, probability: float) -> None:
    """Median, 50 % interval and a wider one of each column of ``draws`` (S, P), the first on top."""
    tail = (1.0 - probability) / 2.0
    low, lower, middle, upper, high = np.quantile(draws, [tail, 0.25, 0.5, 0.75, 1.0 - tail], axis=0)
    places = np.arange(draws.shape[1])[::-1]
    axes.hlines(places, low, high, color=INK, linewidth=1.5)
    axes.hlines(places, lower, upper, color=INK, linewidth=5)
    axes.plot(middle, places, "o", color=PAPER, markeredgecolor=INK, markersize=5)
    axes.set_yticks(places, names)
    axes.tick_params(left=False)
    axes.locator_params(axis="x", nbins=5)
    left, right = axes.get_xlim()
    if left < 0.0 < right:
        axes.axvline(0.0, color=FAINT, linewidth=1, zorder=0)


def marginal(draws: np.ndarray, axes: Axes, *, probability: float) -> None:
    """A histogram of all draws, or bars for a few whole numbers, above the mean and an interval."""
    values = draws[np.isfinite(draws)]
    if values.size == 0:
        return
    levels = np.unique(values)
    tail = (1.0 - probability) / 2.0
    if levels.size <= MOST_BARS and np.all(levels == np.round(levels)):
        shares = [np.mean(values == level) for level in levels]
        axes.bar(levels, shares, width=0.8, color=FAINT)
        axes.set_xticks(levels[:: max(1, levels.size // 6)])
        axes.set_xlim(levels[0] - 1.0, levels[-1] + 1.0)
    else:
        count = min(np.histogram_bin_edges(values, "fd").size, MOST_BARS)
        heights, edges = np.histogram(values, bins=max(count, 10))
        axes.stairs(heights / values.size, edges, fill=True, color=FAINT)
        axes.locator_params(axis="x", nbins=5)
    low, high = np.quantile(values, [tail, 1.0 - tail])
    axes.hlines(0.0, low, high, color=INK, linewidth=4)
    axes.plot(values.mean(), 0.0, "o", color=PAPER, markeredgecolor=INK, markersize=6, clip_on=False, zorder=3)
    axes.set_ylim(bottom=0.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def trace(draws: np.ndarray, axes: Axes) -> int:
    """Draws (chains, draws) of one parameter in their order; returns n if only each n-th is drawn."""
    stride = max(1, -(-draws.shape[1] // MOST_POINTS))
    places = np.arange(0, draws.shape[1], stride)
    for number, chain in enumerate(draws):
        colour = CHAIN_COLOURS[number % len(CHAIN_COLOURS)]
        axes.plot(places, chain[places], color=colour, linewidth=0.6, alpha=0.8)
    axes.set_xlim(0, max(draws.shape[1] - 1, 1))
    result: int = stride
    return result


TRAINING = {
    "newton_decrement": ("distance to the mode (sd)", "s-", FAINT),
    "kl_estimate": ("estimated KL (nats)", "o-", ACCENT),
    "weight_change": ("change of the weights (share)", "^-", INK),
}
"""What :func:`training` draws: label, marker and colour."""


def training(fit: Fit, axes: Axes) -> None:
    """The search for the mode, if there was one, then the estimated KL and the changes of the weights, against time."""
    series = training_series(fit)
    for name, (seconds, values) in series.items():
        label, marker, colour = TRAINING[name]
        axes.semilogy(seconds, values, marker, color=colour, label=label)
    if series:
        _label_decades(axes, np.concatenate([values for _, values in series.values()]))
        axes.legend(frameon=False, fontsize=8)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds of training")


def training_series(fit: Fit) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Seconds and positive values of what training reported; of an estimate that stays for a while, its first value."""
    history = fit.tree["training"].data_vars if "training" in fit.tree else {}
    series = {}
    for name in TRAINING:
        values = history[name].to_numpy() if name in history else np.zeros(0)
        is_new = values != np.concatenate([[np.nan], values[:-1]])[: values.size]
        steps = np.flatnonzero(np.isfinite(values) & (values > 0) & is_new)
        if steps.size:
            series[name] = (history["seconds"].to_numpy()[steps], values[steps])
    return series


def _label_decades(axes: Axes, values: np.ndarray) -> None:
    """Plain numbers at a logarithmic axis, at 1, 2 and 5 if it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - an optional extra

    is_short = values.max() < 100.0 * values.min()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def weights(fit: Fit, axes: Axes) -> None:
    """The sorted weights of the coreset."""
    axes.plot(np.sort(fit.coreset.weights)[::-1], color=INK)
    axes.set_xlabel("coreset row, by weight")
    axes.set_ylabel("weight")


def save_overview(fit: Fit, path: Path, *, variable: str, labels: Mapping[int, str], title: str) -> Path:
    """Intervals, training and weights side by side in one file."""
    pyplot = import_pyplot()
    figure, panels = pyplot.subplots(
        1, 3, figsize=(13, 4.2), layout="constrained", gridspec_kw={"width_ratios": [1.5, 1, 1]}
    )
    forest(fit, variable, panels[0], labels)
    panels[0].set_xlabel("effect of one standard deviation on the log odds")
    training(fit, panels[1])
    weights(fit, panels[2])
    for panel, name in zip(panels, ("Posterior: 50 % and 95 % intervals", "Training", "Weights"), strict=True):
        panel.set_title(name, loc="left", fontsize=10, fontweight="bold", color=INK)
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def import_pyplot() -> Any:
    """matplotlib's pyplot without a screen."""
    extra("matplotlib").use("agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot
