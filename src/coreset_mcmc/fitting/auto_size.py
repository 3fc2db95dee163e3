"""``coreset_size="auto"``: more and more rows until the estimated KL is low enough."""

from __future__ import annotations

from dataclasses import replace

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.trees import first_position
from coreset_mcmc.diagnostics.mixing import in_nats, is_better
from coreset_mcmc.fitting.folders import inside
from coreset_mcmc.fitting.pipeline import fit_best
from coreset_mcmc.fitting.reading import Reading
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.results.fit import Fit

MAX_SIZES = 5
"""How many sizes are tried."""


def fit_growing(request: Request, reading: Reading) -> Fit:
    """Fit with twice as many rows until the estimated KL is at most the target, or more rows make no sense.

    If none is good enough, the one with the lowest estimate is what is left; the last of those that are equal.
    """
    require(
        reading.method.uses_coreset_rows and not request.names_rows,
        'coreset_size="auto"',
        got="a method without a coreset, or given rows",
        expected="a method that selects rows",
        fix="Leave coreset_size out.",
    )
    most = max(reading.rows.size // 2, 1)
    count = min(reading.method.fewest_rows(reading.model, first_position(reading.positions)), most)
    tried: list[str] = []
    best: Fit | None = None
    while True:
        folder = inside(request.checkpoint, f"rows-{count}")
        fitted = fit_best(replace(request, coreset_size=count, checkpoint=folder), reading)
        tried.append(f"{count} rows gave {in_nats(fitted.kl_estimate)}")
        is_good = fitted.kl_estimate <= request.kl_target
        if best is None or is_better(fitted.kl_estimate, best.kl_estimate):
            best = fitted
        if is_good or count >= most or len(tried) == MAX_SIZES or fitted.is_interrupted:
            break
        count = min(2 * count, most)
    verdict = "at or below" if is_good else "still above"
    reason = f"{', then '.join(tried)}: {verdict} the target of {request.kl_target:g}"
    if best is not fitted:
        reason += f"; the best of them, with {best.coreset.size} rows, is kept"
    return best.with_settings({"coreset_size": f"auto: {reason}"})
