"""The assessment: a few hundred draws against all rows, and a few fits with other rows.

It is to cost no more than the fit. So draws that the final check of the fit has seen are not seen again; other fits are
checked by fewer draws, for only the order of their distance matters; and a coreset of half the rows that agrees with
the one at hand is evidence enough: as many rows make smaller errors. If it does not agree, as many rows are tried.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.trees import num_positions, pooled, thinned
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.blocks import rows_of
from coreset_mcmc.diagnostics.mixing import sampling_quality
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.distance import NEGLIGIBLE, survey
from coreset_mcmc.posterior.modes.found import nats_left_out
from coreset_mcmc.results.fit import Fit, model_of
from coreset_mcmc.results.influence import effective_number, influence_of
from coreset_mcmc.results.left_out import kl_where_draws_are
from coreset_mcmc.results.ratios import smoothed, weighted_rows
from coreset_mcmc.verdict import rules
from coreset_mcmc.verdict.other_draws import without_coreset_draws
from coreset_mcmc.verdict.other_modes import other_modes
from coreset_mcmc.verdict.refits import largest_known, num_parameters, other_coresets
from coreset_mcmc.verdict.users_names import users_name
from coreset_mcmc.verdict.verdict import Trust, conclude

FEWEST_DRAWS = 25
"""Pareto smoothing fits a tail to the largest fifth of them."""
FEWEST_WITH_MANY_ROWS, MOST_EVALUATIONS = 50, 400_000_000
"""Draws share one pass over the data but not its work, so there are fewer with very many rows."""


@entry_point
def trust(
    fit: Fit,
    *,
    draws: int = 400,
    num_coresets: int = 2,
    sensitivity: bool = True,
    random_seed: int = 0,
    progressbar: bool = False,
) -> Trust:
    """Whether the draws of a fit can be trusted as draws of the full posterior.

    The verdict is the worst level of the findings: "good", "use with care" or "do not use".

    ======================================  =================  =====================  =================
    finding                                 good               use with care          do not use
    ======================================  =================  =====================  =================
    estimated KL, nats                      up to 0.1          up to 1                more
    Pareto k-hat *                          up to 0.5          up to 0.7              more
    R-hat across coresets                   up to 1.05         up to 1.3              more **
    effective rows for each parameter       1 and more         fewer                  (never)
    estimated KL with half the rows *       up to 1            more                   (never)
    share of modes that draws leave out     up to 0.001        more                   more than they hold
    R-hat of the chains                     up to 1.01         up to 1.1              more
    smallest bulk ESS                       100 for a chain    50 in all              fewer
    divergences                             none               up to 5 %              more
    ======================================  =================  =====================  =================

    Lines with a star do not count if the estimated KL is below 0.01: all importance ratios are nearly equal then. Two
    stars: "use with care" if another coreset is more than 1 nat away by its own estimate, for then it is to blame. An
    estimate that is NaN counts as "do not use": nothing is known. Only what nobody could have computed, R-hat from a
    single chain, and other coresets that could not be fitted, count as "use with care". Fits without draws of a coreset
    posterior (full-data methods, ``fit.exact()``, ``fit.reweight()``) are judged by what applies to them.

    Args:
        fit: what :func:`fit` returned; one read from a file needs its model and data.
        draws: how many evenly spaced draws go through all rows; with very many rows fewer do, at least 50.
        num_coresets: this coreset and others with rows drawn anew, each a fit of its own; nothing compiles again. They
            have as many rows, but for one of half the rows where that agrees already. 1 leaves the comparison out.
        sensitivity: fit a coreset of half the rows; it uses the programs of this one.
        random_seed: for the rows of the other coresets.
        progressbar: show the progress of a long pass, and of the other fits.
    """
    began = time.perf_counter()
    require_count("draws", draws, at_least=FEWEST_DRAWS, fix="Leave it out for 400.")
    require_count("num_coresets", num_coresets, at_least=1, fix="Use 1 to leave the comparison out.")
    require(isinstance(fit, Fit), "fit", got=type(fit).__name__, expected="a Fit", fix="Pass what cm.fit returned.")
    if not fit.samples_coreset:
        return without_coreset_draws(fit, began, seed=random_seed)
    model, positions = model_of(fit), fit.positions()
    with show_passes(progressbar):
        passed = _pass_over_rows(fit, model, positions, draws, random_seed)
    matters = not passed.kl_estimate <= NEGLIGIBLE
    findings = [
        rules.distance(passed.kl_estimate, passed.num_draws),
        rules.tails(passed.pareto_k, passed.effective_draws, passed.num_draws, matters=matters),
    ]
    half_size = fit.coreset.size // 2
    with_half = sensitivity and half_size > 0
    others = other_coresets(
        fit, positions, num_coresets, half_size if with_half else 0, seed=random_seed, progressbar=progressbar
    )
    kl_of_others = largest_known(kl_where_draws_are(other.fit) for other in others.compared if other.fit is not None)
    if others.compared:
        failure = next((other.failure for other in others.compared if other.failure), "")
        place = others.comparison.place
        shown = others.comparison._replace(place=users_name(fit, place) if place else "")
        findings.append(
            rules.agreement(*shown, num_coresets, failure, kl_of_others=kl_of_others, has_half=others.half_stands_in)
        )
    effective_rows = _effective_rows(fit, model, positions)
    if fit.coreset.term is None:
        findings.append(rules.rows(effective_rows, num_parameters(positions), fit.coreset.num_rows))
    if with_half:
        half = others.half
        findings.append(rules.reserve(half.kl_estimate, half_size, half.failure, matters=matters))
    with show_passes(progressbar):
        elsewhere = other_modes(fit, model, positions, seed=random_seed)
    findings += [elsewhere.finding, rules.sampling(sampling_quality(fit.tree))]
    summary = (
        f"The coreset posterior is {passed.kl_estimate:.2g} nats from the full one as far as {passed.num_draws} draws "
        "can tell, and nothing else speaks against it."
    )
    return conclude(
        findings,
        summary,
        kl_estimate=passed.kl_estimate + nats_left_out(elsewhere.finding.value),
        pareto_k=passed.pareto_k,
        effective_draws=passed.effective_draws,
        num_draws=passed.num_draws,
        rhat_across_coresets=others.comparison.rhat,
        largest_shift=others.comparison.largest_shift,
        effective_rows=effective_rows,
        size_sensitivity=others.half.kl_estimate,
        kl_of_others=kl_of_others,
        seconds=time.perf_counter() - began,
        num_evaluations=passed.num_evaluations + elsewhere.num_evaluations + others.num_evaluations,
    )


def _effective_rows(fit: Fit, model: Model, positions: Position) -> float:
    """By the weights or by the influences, whichever are less concentrated."""
    rows = rows_of(fit.own_rows, "trust")
    return max(fit.coreset.effective_size, effective_number(influence_of(model, positions, rows, fit.coreset)))


class PassOverRows(NamedTuple):
    """What the log-ratios of a few hundred draws tell."""

    kl_estimate: float
    pareto_k: float
    effective_draws: float
    num_draws: int
    num_evaluations: int


def _pass_over_rows(fit: Fit, model: Model, positions: Position, draws: int, seed: int) -> PassOverRows:
    """The draws of the final check are among them: only the others are evaluated."""
    rows, coreset = rows_of(fit.own_rows, "trust", infinite=model.infinite), fit.coreset
    wanted = min(
        draws, max(MOST_EVALUATIONS // (2 * rows.size), FEWEST_WITH_MANY_ROWS), num_positions(pooled(positions))
    )
    surveyed = None if fit.checked is None else fit.checked.thinned(wanted)
    missing = wanted if surveyed is None else wanted - surveyed.num_draws
    if missing:
        few, reference = weighted_rows(rows, coreset.selected), None if surveyed is None else surveyed.reference
        generator, kept, term = np.random.default_rng(seed), thinned(positions, missing), coreset.selected.term
        more = survey(generator, model, rows, few, term, kept, "checking", reference)[0]
        surveyed = more if surveyed is None else surveyed.joined(more)
    assert surveyed is not None
    log_ratios = surveyed.draws.log_ratios
    count = len(log_ratios)
    num_evaluations = 2 * missing * (rows.size + coreset.size)
    if count < FEWEST_DRAWS:
        return PassOverRows(surveyed.kl_estimate, math.nan, math.nan, count, num_evaluations)
    ratios = smoothed(log_ratios)
    return PassOverRows(surveyed.kl_estimate, ratios.pareto_k, ratios.effective_size, count, num_evaluations)
