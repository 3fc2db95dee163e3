"""How a fit and a coreset look in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from coreset_mcmc.core.html import display, paragraph, small, table
from coreset_mcmc.core.words import explained

if TYPE_CHECKING:
    from coreset_mcmc.results.coreset import Coreset
    from coreset_mcmc.results.fit import Fit

MOST_PARAMETERS = 12
MOST_ROWS = 5


def fit_display(fit: Fit) -> str:
    """What was done, the first parameters, and what is not said yet: whether to trust it."""
    from coreset_mcmc.results.summary_table import SummaryTable  # noqa: PLC0415 - imports pandas

    sizes = fit.posterior.sizes
    facts = [
        ("method", escape(str(fit.settings["method"]))),
        ("draws of", escape(fit.law.value)),
        ("draws", f"{sizes.get('chain', 0)} chains of {sizes.get('draw', 0):,}"),
    ]
    words = ["ESS", "R-hat"]
    if fit.has_coreset:
        facts.insert(1, ("coreset", f"{fit.coreset.size:,} of {fit.coreset.num_rows:,} rows"))
        facts.append(("work", f"{fit.full_passes:,.0f} passes over all rows"))
        words.append("pass")
    if fit.samples_coreset:
        facts.append(("estimated KL", f"{fit.kl_estimate:.3g} nats from the posterior of all rows"))
        words = ["KL", *words]
    summary = SummaryTable(fit.summary()).in_text()
    kept = [name for name in summary if not str(name).startswith("mcse")]
    shown = summary[kept].head(MOST_PARAMETERS).to_html(border=0)
    more = len(summary) - MOST_PARAMETERS
    rest = paragraph(f"and {more:,} more parameters: fit.summary()") if more > 0 else ""
    advice = paragraph("Whether to use it: fit.trust().")
    return display("Fit", table(facts), shown, rest, advice, small(explained(*words)))


def coreset_display(coreset: Coreset) -> str:
    """Its size, how the weights are spread, and the heaviest rows."""
    positive = coreset.weights[coreset.weights > 0]
    facts = [
        ("rows", f"{coreset.size:,} of {coreset.num_rows:,}, {positive.size:,} of positive weight"),
        ("sum of the weights", f"{coreset.weights.sum():,.0f}"),
        ("effective rows", f"{coreset.effective_size:,.0f}, as many of equal weight would be as concentrated"),
    ]
    if coreset.term is not None:
        facts.append(
            ("Gaussian term", f"about {len(coreset.coordinates)} parameters; rows alone are not the posterior")
        )
    heaviest = np.argsort(-coreset.weights, kind="stable")[:MOST_ROWS]
    rows = coreset.to_frame().iloc[heaviest].to_html(border=0, index=False, max_cols=8, float_format="{:.5g}".format)
    return display("Coreset", table(facts), paragraph("The heaviest rows:"), rows)
