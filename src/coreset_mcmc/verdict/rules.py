"""From numbers to findings: the thresholds, and why they are where they are.

**KL.** Two Gaussians of the same shape whose means are e standard deviations apart have a KL of e^2 / 2, so no mean is
off by more than sqrt(2 KL): 0.45 at 0.1 nats, where no standard deviation is off by more than about a third, and 1.4 at
1 nat. Two estimates from the same log-ratios r of draws of
the coreset posterior, and the larger counts: half their variance, and log mean exp(r) - mean(r). They agree near zero.
Where the coreset posterior is too wide the first is too large; where it is too narrow, with variance c < 1 of the
right one, the first is (1 - c)^2 / 4 while the KL is (c - 1 - log c) / 2, and the second one grows as it should.

**Pareto k-hat.** In the same Gaussian case the ratios have a tail of shape k = 1 - c. Up to 0.5 their variance is
finite and the approximation is close; above 0.7 no number of draws makes up for what the coreset posterior lacks
(Vehtari et al. 2024; Yao et al. 2018 use the same limits for variational approximations). Below 0.01 nats all ratios
are within a few tenths of each other, c is above 0.8, and the shape of their tail is that of a cubic remainder, which
is of no consequence: then k-hat is shown but not judged.

**Agreement.** Chains on one coreset agree on that coreset's posterior, right or wrong. Coresets with other rows make
other errors. If each coreset misplaces a mean by e standard deviations, G of them have an R-hat of
sqrt(1 + e^2 2 (G - 1) / (2 G - 1)), because R-hat splits each group in two: for two coresets e = 0.39 gives 1.05 and
e = 1 gives 1.3. Where another coreset is far away by its own estimate, the disagreement is its own fault: this size
works for some rows and not for others, which calls for care but does not condemn the one at hand. A coreset of half the
rows makes larger errors than one of as many: where it agrees, so would another of this size, and it stands in for it.

**Effective rows.** Fewer than parameters means that a few heavy rows decide the result. That may be right, as where
rows repeat and one of each kind stands for all, so it calls for care at most. Kish's number is taken of the weights and
of the influences, weight times spread of the row's log-likelihood over draws, and the larger counts: where exposures
differ a weight may be enormous and decide nothing, and rows of equal weight are enough however they differ.

**Half the rows.** It says how much reserve there is, not that something is wrong: more than 1 nat there calls for care
at most, and only where the distance of the coreset itself is not negligible.
"""

from __future__ import annotations

import math

from coreset_mcmc.diagnostics.mixing import MAX_RHAT, MIN_DRAWS, MIN_ESS_PER_CHAIN, SamplingQuality
from coreset_mcmc.verdict.verdict import BAD, CARE, GOOD, Finding, level_of, worst

DISTANCE = "Distance to the full posterior (KL)"
KL_CARE, KL_BAD = 0.1, 1.0
SHAPE_CARE, SHAPE_BAD = 0.5, 0.7
ACROSS_CARE, ACROSS_BAD = 1.05, 1.3
ROWS_CARE = 1.0
"""Effective rows for each parameter."""
HALF_CARE = 1.0
"""Nats at half the rows."""
RHAT_BAD = 1.1
ESS_BAD = 50
"""In all; the mean of so many draws is off by a seventh of a standard deviation."""
DIVERGING_BAD = 0.05
LARGER = "Use a larger coreset_size (twice the rows), or correct the draws with fit.reweight() or fit.exact()."


def nats(kl_estimate: float) -> str:
    """A distance in words."""
    return "infinitely many nats" if math.isinf(kl_estimate) else f"{kl_estimate:.2g} nats"


def finding(name: str, value: float, level: str, text: str, remedy: str) -> Finding:
    """A finding whose remedy is dropped if there is nothing to remedy."""
    return Finding(name, value, level, text, "" if level == GOOD else remedy)


def distance(kl_estimate: float, num_draws: int) -> Finding:
    """The estimated KL."""
    if math.isinf(kl_estimate):
        text = "Some draws are impossible under rows that are not in the coreset: the distance is infinite."
    elif math.isnan(kl_estimate):
        text = (
            f"The distance is unknown: from {num_draws} draws and the places around them there is nothing to compare, "
            "because the rows say the same everywhere, the draws never moved, or there is a single one."
        )
    else:
        off = f"{math.sqrt(2.0 * max(kl_estimate, 0.0)):.2g}"
        meaning = {
            GOOD: f"no mean is off by more than {off} of its standard deviation",
            CARE: f"means may be off by up to {off} of their standard deviation, and intervals too short or too long",
            BAD: f"means may be off by {off} standard deviations",
        }[level_of(kl_estimate, KL_CARE, KL_BAD)]
        text = (
            f"The estimated KL from the coreset posterior to the full one is {kl_estimate:.2g} nats "
            f"({num_draws} draws): {meaning}."
        )
    return finding(DISTANCE, kl_estimate, level_of(kl_estimate, KL_CARE, KL_BAD), text, LARGER)


def tails(pareto_k: float, effective_draws: float, num_draws: int, *, matters: bool = True) -> Finding:
    """The shape of the importance ratios to the full posterior; it ``matters`` unless all ratios are nearly equal."""
    level = level_of(pareto_k, SHAPE_CARE, SHAPE_BAD) if matters or math.isnan(pareto_k) else GOOD
    if math.isnan(pareto_k):
        text = f"With {num_draws} draws there is no tail of the importance ratios to look at."
        return finding("Tail of the importance ratios (k-hat)", pareto_k, level, text, "Keep more draws.")
    meaning = {
        GOOD: "the coreset posterior covers the full one as far as these draws tell",
        CARE: "the full posterior has more mass at the edge of these draws; intervals may be too short",
        BAD: "the full posterior has mass where the coreset posterior has almost none; intervals are too short",
    }[level]
    text = (
        f"The Pareto k-hat of the importance ratios is {_shape(pareto_k)}, and {effective_draws:.0f} of {num_draws} "
        f"draws survive weighting: {meaning}."
    )
    remedy = "Use a larger coreset_size, or fit.exact(); fit.reweight() will do only while k-hat is below 0.7."
    return finding("Tail of the importance ratios (k-hat)", pareto_k, level, text, remedy)


def _shape(pareto_k: float) -> str:
    return "infinite" if math.isinf(pareto_k) else f"{pareto_k:.2f}"


def agreement(
    rhat: float,
    shift: float,
    place: str,
    num_coresets: int,
    failure: str,
    *,
    kl_of_others: float = math.nan,
    has_half: bool = False,
) -> Finding:
    """Whether independently drawn coresets give the same posterior; ``kl_of_others`` is their largest estimated KL.

    ``has_half``: one of them has half the rows.
    """
    name = "Agreement across coresets (R-hat)"
    if math.isnan(rhat):
        reason = failure or "no parameter varies"
        return finding(name, rhat, CARE, f"Coresets could not be compared: {reason}.", LARGER)
    level = level_of(rhat, ACROSS_CARE, ACROSS_BAD)
    meaning = {
        GOOD: "other rows tell the same",
        CARE: "the answer depends on which rows were drawn",
        BAD: "the answer depends on which rows were drawn, or each fit found another mode",
    }[level]
    if level == BAD and kl_of_others > KL_BAD:
        level, meaning = CARE, f"another coreset is {nats(kl_of_others)} off, so this size works for some rows only"
    sizes = ", one of them with half the rows," if has_half else " of this size"
    text = (
        f"Across {num_coresets} independently drawn coresets{sizes} R-hat is {rhat:.3f} and a posterior mean "
        f"moves by up to {shift:.2g} standard deviations{f' ({place})' if place else ''}: {meaning}."
    )
    return finding(name, rhat, level, text, LARGER)


def rows(effective_rows: float, dimension: int, num_rows: int) -> Finding:
    """Whether the weight rests on enough rows; all rows are always enough."""
    level = GOOD if effective_rows * (1 + 1e-9) >= min(ROWS_CARE * dimension, num_rows) else CARE
    text = f"The rows have the influence of {effective_rows:.0f} equal ones, for {dimension} parameters"
    text += "." if level == GOOD else ": a few heavy rows decide the result."
    return finding("Effective rows of the coreset", effective_rows, level, text, "Use a larger coreset_size.")


def reserve(half_estimate: float, half_size: int, failure: str, *, matters: bool = True) -> Finding:
    """What half the rows would have given; it ``matters`` unless the coreset itself is at a negligible distance."""
    name = "Estimated KL with half the rows"
    if math.isnan(half_estimate):
        return finding(name, half_estimate, CARE, f"A coreset of half the rows could not be judged: {failure}.", LARGER)
    level = CARE if half_estimate > HALF_CARE and matters else GOOD
    meaning = "there are rows to spare" if half_estimate <= HALF_CARE else "this size is near the edge of what works"
    text = f"With {half_size} rows the estimated KL is {nats(half_estimate)}: {meaning}."
    return finding(name, half_estimate, level, text, "Use a larger coreset_size.")


def sampling(quality: SamplingQuality) -> Finding:
    """Whether the draws represent what they were drawn from."""
    name = "Sampling (largest R-hat of the chains)"
    if quality.num_draws < MIN_DRAWS:
        text = f"There are {quality.num_draws} draws in each chain: too few to tell whether the chains have mixed."
        return finding(name, quality.rhat, BAD, text, "Keep more draws: draws=1000.")
    level = worst(
        [
            CARE if quality.num_chains == 1 else level_of(quality.rhat, MAX_RHAT, RHAT_BAD),
            level_of(-quality.ess, -MIN_ESS_PER_CHAIN * quality.num_chains, -ESS_BAD),
            level_of(quality.share_diverging, 0.0, DIVERGING_BAD),
        ]
    )
    rhat = "no R-hat" if math.isnan(quality.rhat) else f"R-hat {quality.rhat:.3f}"
    text = (
        f"The {quality.num_chains} chains have {rhat}, a smallest bulk ESS of {quality.ess:.0f} and "
        f"{quality.num_diverging or 'no'} divergences"
    )
    text += "." if level == GOOD else ": the draws may not represent what they were drawn from."
    remedy = "Use four chains, more tune and more draws; if that does not help, reparametrise or use stronger priors."
    return finding(name, quality.rhat, level, text, remedy)
