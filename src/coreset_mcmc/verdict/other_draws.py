"""Fits whose draws are not those of a coreset posterior: what can be said about them."""

from __future__ import annotations

import math
import time
from typing import Any

from coreset_mcmc.diagnostics.mixing import sampling_quality
from coreset_mcmc.methods.law import Law
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.verdict import rules
from coreset_mcmc.verdict.other_modes import other_modes
from coreset_mcmc.verdict.verdict import CARE, Finding, Trust, conclude, level_of

ESS_OF_WEIGHTS = 100.0


def without_coreset_draws(fit: Fit, began: float, *, seed: int) -> Trust:
    """Weights of resampled draws, mixing of all others; a distance that nobody measured calls for care."""
    findings: list[Finding] = []
    numbers: dict[str, Any] = {"effective_rows": fit.coreset.effective_size if fit.has_coreset else math.nan}
    if fit.law is Law.REWEIGHTED:
        num_draws = fit.posterior.sizes["draw"]
        pareto_k, effective = fit.settings["pareto_k"], fit.settings["effective_draws"]
        numbers |= {"pareto_k": pareto_k, "effective_draws": effective, "num_draws": num_draws}
        findings += [rules.tails(pareto_k, effective, num_draws), _surviving(effective)]
        summary = "Importance weights bring these draws to the full posterior; the fit before says how they mixed."
    else:
        summary = "These draws come from the full posterior, and their chains agree."
        if fit.law is Law.APPROXIMATE:
            findings.append(_distance(fit, numbers))
            summary = "The weights of these draws are even, so they can pass for draws of the full posterior."
        if fit.model is not None and fit.own_rows is not None:
            elsewhere = other_modes(fit, fit.model, fit.positions(), seed=seed)
            numbers["num_evaluations"] = elsewhere.num_evaluations
            findings.append(elsewhere.finding)
        findings.append(rules.sampling(sampling_quality(fit.tree)))
    return conclude(findings, summary, seconds=time.perf_counter() - began, **numbers)


def _surviving(effective_draws: float) -> Finding:
    level = level_of(-effective_draws, -ESS_OF_WEIGHTS, -rules.ESS_BAD)
    text = f"The weights leave as much as {effective_draws:.0f} equally weighted draws."
    return rules.finding(
        "Draws that survive weighting", effective_draws, level, text, "Keep more draws, or use fit.exact()."
    )


def _distance(fit: Fit, numbers: dict[str, Any]) -> Finding:
    """Of methods that leave weights of their own, those; of all others nothing is known."""
    statistics = fit.tree["sample_stats"]
    if "pareto_k" in statistics:
        pareto_k = float(statistics["pareto_k"].max(skipna=False))
        numbers["pareto_k"] = pareto_k
        level = level_of(pareto_k, rules.SHAPE_CARE, rules.SHAPE_BAD)
        text = f"The Pareto k-hat of the weights from the Gaussian at the mode to the posterior is {pareto_k:.2f}."
        return rules.finding("Tail of the importance ratios (k-hat)", pareto_k, level, text, "Use method=cm.NUTS().")
    text = f"Nothing measures how far the draws of {fit.settings['method']} are from the full posterior."
    return Finding(rules.DISTANCE, math.nan, CARE, text, "Compare with method=cm.NUTS() on fewer rows.")
