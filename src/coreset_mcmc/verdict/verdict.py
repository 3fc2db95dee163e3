"""What an assessment says: findings, each with a level, and the verdict that is the worst of them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from coreset_mcmc.core.html import coloured, display, paragraph, small, table
from coreset_mcmc.core.plain import plain, record
from coreset_mcmc.core.words import explained

GOOD, CARE, BAD = "good", "use with care", "do not use"
LEVELS = (GOOD, CARE, BAD)
"""From best to worst."""

BLIND_SPOTS = (
    "All checks but the search for other modes look only where the chains have been. None can see a mode that no "
    "search has found, tails that the draws did not reach, an error that all coresets share, or whether the model "
    "describes the data."
)
WIDTH = 100
TERMS = ("KL", "k-hat", "R-hat")
"""Words that findings use and a reader may not know."""
HEADINGS = ("check", "value", "level", "what it says")


def worst(levels: Iterable[str]) -> str:
    """The worst of some levels; good if there are none."""
    return max(levels, key=LEVELS.index, default=GOOD)


def level_of(value: float, care_above: float, bad_above: float) -> str:
    """The level of a number that is better when smaller; NaN is the worst, for nothing is known then."""
    return GOOD if value <= care_above else CARE if value <= bad_above else BAD


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    value: float
    """The number; NaN if it could not be computed."""
    level: str
    """"good", "use with care" or "do not use"."""
    text: str
    """What was measured and what it means."""
    remedy: str
    """What to do about it; empty if it is good."""

    @property
    def shown_value(self) -> str:
        """A dash for what could not be computed."""
        return "-" if math.isnan(self.value) else f"{self.value:.3g}"


@dataclass(frozen=True)
class Trust:
    """Whether draws can be trusted. ``print`` it, or take the numbers."""

    verdict: str
    """The worst level among the findings."""
    reason: str
    remedy: str
    """Empty if the verdict is good."""
    findings: tuple[Finding, ...]
    blind_spots: str
    """What none of the findings can see."""
    kl_estimate: float
    """Nats, from the coreset posterior to the full one."""
    pareto_k: float
    effective_draws: float
    """Of the importance weights, out of ``num_draws``."""
    num_draws: int
    """Draws that went through all rows."""
    rhat_across_coresets: float
    largest_shift: float
    """Largest difference of a posterior mean between coresets, in posterior standard deviations."""
    effective_rows: float
    """Kish's number of rows that equal weights would make as concentrated."""
    size_sensitivity: float
    """Estimated KL of a coreset of half the rows."""
    seconds: float
    num_evaluations: int
    """Log-likelihoods of single rows."""
    kl_of_others: float = math.nan
    """Largest estimated KL among the other coresets of the same size."""

    def to_dict(self) -> dict[str, Any]:
        """Values that strict JSON can hold: NaN is None, infinities are the words "inf" and "-inf"."""
        result: dict[str, Any] = plain(self)
        return result

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trust:
        """Back from what :meth:`to_dict` gave."""
        findings = tuple(record(Finding, finding) for finding in values["findings"])
        return record(cls, {**values, "findings": findings})

    def __str__(self) -> str:
        lines = textwrap.wrap(f"{self.verdict.upper()}: {self.reason}", WIDTH)
        if self.remedy:
            lines += textwrap.wrap(f"What to do: {self.remedy}", WIDTH)
        width = max((len(finding.name) for finding in self.findings), default=0)
        for finding in self.findings:
            lines.append(f"  {finding.name:<{width}}  {finding.shown_value:>8}  {finding.level}")
        lines += explained(*TERMS)
        lines += textwrap.wrap(f"Not seen: {self.blind_spots}", WIDTH)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the verdict in its colour, each finding in a line."""
        rows = [
            (escape(finding.name), finding.shown_value, coloured(finding.level), escape(finding.text))
            for finding in self.findings
        ]
        remedy = paragraph(f"What to do: {self.remedy}") if self.remedy else ""
        notes = [*explained(*TERMS), f"Not seen: {self.blind_spots}"]
        said = f"<p>{coloured(self.verdict)}: {escape(self.reason)}</p>"
        return display("Verdict", said, remedy, table(rows, HEADINGS), small(notes))


def conclude(findings: Sequence[Finding], summary: str, **numbers: Any) -> Trust:
    """The verdict, its reason and its remedy, from the first of the worst findings; ``summary`` if all are good."""
    verdict = worst(finding.level for finding in findings)
    decisive = next(finding for finding in findings if finding.level == verdict)
    is_good = verdict == GOOD
    nothing: dict[str, Any] = {
        "kl_estimate": math.nan,
        "pareto_k": math.nan,
        "effective_draws": math.nan,
        "num_draws": 0,
        "rhat_across_coresets": math.nan,
        "largest_shift": math.nan,
        "effective_rows": math.nan,
        "size_sensitivity": math.nan,
        "num_evaluations": 0,
    }
    return Trust(
        verdict=verdict,
        reason=summary if is_good else decisive.text,
        remedy="" if is_good else decisive.remedy,
        findings=tuple(findings),
        blind_spots=BLIND_SPOTS,
        **{**nothing, **numbers},
    )
