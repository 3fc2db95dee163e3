"""Warnings after a fit, in words a user can act on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coreset_mcmc.core.on_use import on_use

if TYPE_CHECKING:
    import xarray
else:
    xarray = on_use("xarray")

MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
MIN_DRAWS = 4
MAX_PARETO_K = 0.7
"""Above it importance sampling has no useful rate of convergence (Vehtari et al. 2024)."""
MAX_KL = 1.0
"""Nats. A shift of one coordinate by 1.4 of its standard deviations costs this much."""
OF_STANDARD_NORMALS = ("_offset", "_decentered", "_base", "_raw", "_std", "_z")
"""How Bambi, NumPyro's handlers and users end the names of standardised effects."""


class SamplingQuality(NamedTuple):
    """How well chains represent what they sample; NaN where there are too few draws or chains to tell."""

    num_chains: int
    num_draws: int
    """From each chain."""
    ess: float
    """The smallest bulk ESS, and the parameter that has it."""
    ess_name: str
    rhat: float
    """The largest R-hat, and the parameter that has it."""
    rhat_name: str
    num_diverging: int

    @property
    def share_diverging(self) -> float:
        return self.num_diverging / (self.num_chains * self.num_draws)


def sampling_quality(tree: xarray.DataTree) -> SamplingQuality:
    """From the groups ``posterior`` and ``sample_stats`` of a fit."""
    import arviz_stats  # noqa: PLC0415 - takes a second, during which ``fit`` compiles

    sizes = tree["posterior"].sizes
    ess, ess_name, rhat, rhat_name = np.nan, "", np.nan, ""
    if sizes["draw"] >= MIN_DRAWS:
        ess, ess_name = _extreme(arviz_stats.ess, tree, np.nanmin, 0.0, method="bulk")
        if sizes["chain"] > 1:
            rhat, rhat_name = _extreme(arviz_stats.rhat, tree, np.nanmax, np.inf)
    has_divergences = "sample_stats" in tree and "diverging" in tree["sample_stats"]
    num_diverging = int(tree["sample_stats"]["diverging"].sum()) if has_divergences else 0
    return SamplingQuality(sizes["chain"], sizes["draw"], ess, ess_name, rhat, rhat_name, num_diverging)


def sampling_warnings(tree: xarray.DataTree) -> list[str]:
    """Problems of mixing that make the draws unreliable as draws of the coreset posterior."""
    sizes = tree["posterior"].sizes
    if sizes["draw"] < MIN_DRAWS:
        return [
            f"Only {sizes['draw']} draws per chain: too few to tell whether the chains have mixed. "
            "Pass draws=1000 or more."
        ]
    messages = []
    quality = sampling_quality(tree)
    ess, rhat = quality.ess, quality.rhat
    if np.isnan(ess):
        messages.append("No parameter ever moves, so there is no effective sample size. Use another kernel or start.")
    elif not ess >= MIN_ESS_PER_CHAIN * sizes["chain"]:
        factor = int(np.ceil(MIN_ESS_PER_CHAIN * sizes["chain"] / max(ess, 1.0)))
        messages.append(
            f"The smallest bulk ESS is {ess:.0f}, below {MIN_ESS_PER_CHAIN} per chain ({quality.ess_name}): quantiles "
            f"and intervals are unreliable. Increase draws (about {factor} times as many would do), or use a kernel "
            "that mixes faster."
        )
    if sizes["chain"] > 1 and not np.isnan(ess) and not rhat <= MAX_RHAT:
        messages.append(
            f"The largest R-hat is {rhat:.3f}, above {MAX_RHAT} ({quality.rhat_name}): the chains do not agree. "
            "Increase tune and draws. If it stays, the posterior has several modes or a parameter that the data do not "
            "determine: give it a stronger prior or another parametrisation."
        )
    if quality.num_diverging:
        messages.append(
            f"{quality.num_diverging} steps ({100 * quality.share_diverging:.1f} %) diverged or could not be "
            f"completed: draws avoid a part of the posterior. {_against_divergences(tree)}"
        )
    if "sample_stats" in tree and "pareto_k" in tree["sample_stats"]:
        shape = float(tree["sample_stats"]["pareto_k"].max(skipna=False))
        if not shape <= MAX_PARETO_K:
            messages.append(
                f"The Pareto k-hat of the importance weights is {shape:.2f}, above {MAX_PARETO_K}: the posterior has "
                "more in its tails, or elsewhere, than the approximation. Do not use these draws; try method=cm.NUTS()."
            )
    return messages


def _against_divergences(tree: xarray.DataTree) -> str:
    """What helps depends on the form that the effects of groups have."""
    groups = [tree[name] for name in ("posterior", "unconstrained_posterior") if name in tree.children]
    names = [str(name) for group in groups for name in group.data_vars]
    standard = next((name for name in names if name.endswith(OF_STANDARD_NORMALS)), None)
    if standard is not None:
        return (
            f"{standard!r} says that effects are written as mean + scale * standard normal, which is made for groups "
            "with few rows. With many rows in each group write them as Normal(mean, scale) (Bambi: noncentered=False); "
            "otherwise give the scales of the groups priors with less mass near zero and in the tails."
        )
    return (
        "If the model has effects of groups, written as Normal(mean, scale), write them as mean + scale * standard "
        "normal where groups have few rows. Otherwise look for a parameter at the edge of its support, and give scales "
        "priors with less mass near zero and in the tails."
    )


def coreset_warnings(kl_estimate: float, beyond: str = "") -> list[str]:
    """Whether the coreset posterior, of which there are draws, is too far from the full one to be used as it is.

    ``beyond`` says which rows forbid some of the draws, if that is known.
    """
    if kl_estimate <= MAX_KL:
        return []
    if math.isnan(kl_estimate):
        return [
            "The distance from the coreset posterior to the full one is unknown: the rows say the same at all draws "
            "and around them, or the draws never moved, so nothing tells a good coreset from a bad one. Check that "
            "log_likelihood depends on every parameter, and start where it does with initvals."
        ]
    if not math.isfinite(kl_estimate):
        which = f" ({beyond})" if beyond else ""
        return [
            "The estimated KL from the coreset posterior to the full one is infinite: some draws are impossible under "
            f"rows that are not in the coreset, which bound the support{which}. Put those rows in with "
            "cm.selection.Given(...), use a larger coreset_size, or correct the draws with fit.reweight()."
        ]
    return [
        f"The estimated KL from the coreset posterior to the full one is {kl_estimate:.3g} nats, above {MAX_KL}: "
        "means may be off by more than a posterior standard deviation. Use a larger coreset_size."
    ]


def _extreme(
    statistic: Callable[..., Any], tree: xarray.DataTree, reduce: Callable[..., Any], worst: float, **options: Any
) -> tuple[float, str]:
    """The smallest or largest value over all variables, and which one has it.

    NaN does not count for what never changes, as an indicator, and is the worst for what does or is no number itself.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        result = statistic(tree, **options)
        dataset = result.to_dataset() if isinstance(result, xarray.DataTree) else result
        draws = tree["posterior"].to_dataset()
        values = {str(name): float(reduce(_or_worst(dataset[name], draws[name], worst))) for name in dataset.data_vars}
        extreme = float(reduce(list(values.values())))
    return extreme, next((name for name, value in values.items() if value == extreme), "")


def _or_worst(found: xarray.DataArray, draws: xarray.DataArray, worst: float) -> np.ndarray:
    """Values of a statistic, with the worst where it is NaN although the draws differ, or are not all finite."""
    flat = draws.transpose("chain", "draw", ...).to_numpy().astype(float)
    is_constant = np.ptp(flat, axis=(0, 1)) == 0
    is_finite = np.all(np.isfinite(flat), axis=(0, 1))
    values = found.to_numpy().reshape(is_constant.shape)
    return np.where(~is_finite | (np.isnan(values) & ~is_constant), worst, values)


def is_better(one: float, other: float) -> bool:
    """Whether an estimated KL is lower than another, or no higher; NaN is the highest of all."""
    return one <= other or math.isnan(other)


def in_nats(kl_estimate: float) -> str:
    """An estimated KL in words."""
    return "an unknown distance" if math.isnan(kl_estimate) else f"{kl_estimate:.2g} nats"
