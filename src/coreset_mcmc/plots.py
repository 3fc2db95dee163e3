"""Pictures of a fit, with matplotlib (extra ``demo``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coreset_mcmc.errors import InputError
from coreset_mcmc.result import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, ACCENT, FAINT = "#1b2a41", "#d1495b", "#9fb3c8"


def forest(fit: Fit, variable: str, axes: Axes, labels: Mapping[int, str] | None = None) -> None:
    """Median, 50 % and 95 % intervals of the components of a variable: all, or those that ``labels`` names."""
    draws = fit.posterior["posterior"][variable].to_numpy()
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    shown = labels or {j: f"{variable}[{j}]" for j in range(flat.shape[1])}
    flat, names = flat[:, list(shown)], list(shown.values())
    low, lower, middle, upper, high = np.quantile(flat, [0.025, 0.25, 0.5, 0.75, 0.975], axis=0)
    places = np.arange(flat.shape[1])[::-1]
    axes.axvline(0.0, color=FAINT, linewidth=1)
    axes.hlines(places, low, high, color=INK, linewidth=1.5)
    axes.hlines(places, lower, upper, color=INK, linewidth=5)
    axes.plot(middle, places, "o", color="white", markeredgecolor=INK, markersize=5)
    axes.set_yticks(places, names)
    axes.tick_params(left=False)


def training(fit: Fit, axes: Axes) -> None:
    """The search for the mode, if there was one, and the estimated KL of the weights tried after it."""
    history = fit.posterior["training"]
    estimates = history["kl_estimate"].to_numpy()
    changes = np.flatnonzero(np.isfinite(estimates) & (estimates != np.concatenate([[np.nan], estimates[:-1]])))
    if "newton_decrement" in history:
        decrement = history["newton_decrement"].to_numpy()
        steps = np.flatnonzero(np.isfinite(decrement) & (decrement > 0))
        axes.semilogy(steps + 1, decrement[steps], "s-", color=FAINT, label="distance to the mode (sd)")
    axes.semilogy(changes + 1, estimates[changes], "o-", color=ACCENT, label="estimated KL (nats)")
    axes.legend(frameon=False, fontsize=8)
    axes.set_xlim(left=0)
    axes.set_xlabel("training steps")


def weights(fit: Fit, axes: Axes) -> None:
    """The sorted weights of the coreset."""
    axes.plot(np.sort(fit.coreset.weights)[::-1], color=INK)
    axes.set_xlabel("coreset row, by weight")
    axes.set_ylabel("weight (rows it stands for)")


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
    """matplotlib without a screen, or an error that says how to install it."""
    try:
        import matplotlib  # noqa: PLC0415 - an optional extra, imported when used
    except ImportError as error:
        raise InputError(
            "plots",
            got="no package matplotlib",
            expected="the extra 'demo'",
            fix='Install it: pip install "coreset-mcmc[demo]".',
        ) from error
    matplotlib.use("agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot
