"""The verdict in plain language, for a reader who never heard of a coreset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from coreset_mcmc.methods.law import Law
from coreset_mcmc.report.wording import clean, number, shown
from coreset_mcmc.results.fit import Fit

LOOKS = {"good": "good", "use with care": "care", "do not use": "bad"}
"""Classes of the page's style; anything else looks neutral."""
SYMBOLS = {"good": "✓", "care": "!", "bad": "✕", "unknown": "?"}
HEADLINES = {
    "good": "Good: these results can be used",
    "care": "Use with care",
    "bad": "Do not use these results",
    "unknown": "Not checked",
}
MEASURES = {
    "kl_estimate": ("Estimated distance from the posterior of all rows (KL, nats)", "0 is no difference at all"),
    "pareto_k": ("Pareto k-hat", "below 0.7 the draws can be corrected to those of all rows"),
    "num_draws": ("Draws compared with all rows", ""),
    "effective_draws": ("Effective draws after a correction", "close to their number is good"),
    "rhat_across_coresets": ("R-hat across different choices of rows", "1 is full agreement"),
    "largest_shift": ("Largest shift of a mean with other rows", "in standard deviations of the posterior"),
    "effective_rows": ("Effective rows", "as many rows of equal weight would be as concentrated"),
    "size_sensitivity": ("Estimated distance with half as many rows (KL, nats)", "small if there are rows to spare"),
    "seconds": ("Seconds that the checks took", ""),
    "num_evaluations": ("Log-likelihoods of single rows in the checks", ""),
}


@dataclass(frozen=True)
class Finding:
    """One check: its outcome in words."""

    look: str
    level: str
    name: str
    value: str
    text: str
    remedy: str

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.look]


@dataclass(frozen=True)
class Verdict:
    """What stands on top of the report."""

    look: str
    headline: str
    reason: str
    remedy: str
    findings: tuple[Finding, ...]
    blind_spots: str
    measures: tuple[tuple[str, str, str], ...]
    """Name, value and meaning of each number."""

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.look]


def verdict_of(trust: Any | None, fit: Fit) -> Verdict:
    """From the checks, or words that say that there were none."""
    if trust is None:
        return _unchecked(fit)
    look = LOOKS.get(trust.verdict, "unknown")
    return Verdict(
        look=look,
        headline=HEADLINES[look] if look != "unknown" else clean(trust.verdict),
        reason=clean(trust.reason, 2_000),
        remedy=clean(trust.remedy or "", 2_000),
        findings=tuple(_finding(finding) for finding in trust.findings),
        blind_spots=clean(trust.blind_spots or "", 4_000),
        measures=tuple(
            (name, "not computed" if _is_missing(value) else _measure(value), meaning)
            for key, (name, meaning) in MEASURES.items()
            for value in [getattr(trust, key)]
        ),
    )


def _unchecked(fit: Fit) -> Verdict:
    reason = "Nothing has checked whether these results can be trusted."
    if math.isfinite(fit.kl_estimate):
        reason += (
            f" The only hint is the estimated distance (KL) from the posterior of all rows, {number(fit.kl_estimate)} "
            f"nats: as if one parameter were off by {number(math.sqrt(2.0 * max(fit.kl_estimate, 0.0)), 2)} of its "
            "standard deviations."
        )
    elif fit.samples_coreset and math.isnan(fit.kl_estimate):
        reason += " The distance (KL) from the posterior of all rows is unknown: there was nothing to tell it from."
    elif fit.samples_coreset:
        reason += " Some draws are impossible under rows that were not chosen: the distance (KL) is infinite."
    return Verdict("unknown", HEADLINES["unknown"], reason, "Run the checks before you rely on them.", (), "", ())


def _finding(finding: Any) -> Finding:
    return Finding(
        look=LOOKS.get(finding.level, "unknown"),
        level=clean(finding.level),
        name=clean(finding.name),
        value="" if _is_missing(finding.value) else _measure(finding.value),
        text=clean(finding.text, 2_000),
        remedy=clean(finding.remedy or "", 2_000),
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _measure(value: Any) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else shown(value)


def in_plain_words(fit: Fit) -> str:
    """What was done, without a technical word."""
    if not fit.has_coreset:
        return (
            f"The method {clean(fit.settings.get('method', 'used here'))} worked on the data directly; no rows were "
            "chosen to stand in for the others."
        )
    coreset = fit.coreset
    text = (
        f"The data have {number(coreset.num_rows)} rows. To save time, {number(coreset.size)} of them were chosen and "
        "given weights, so that together they should say nearly the same about the parameters as all rows do (a "
        "coreset)."
    )
    if fit.law in (Law.REWEIGHTED, Law.EXACT):
        return f"{text} The draws were then brought to all rows ({fit.law.value})."
    return f"{text} The verdict is about how far the results can be taken for those of all rows."
