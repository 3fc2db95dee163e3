"""The estimated KL of a fit has two parts: what its draws show, and modes of the posterior that they leave out."""

from __future__ import annotations

from coreset_mcmc.posterior.modes.found import nats_left_out
from coreset_mcmc.results.fit import Fit


def kl_where_draws_are(fit: Fit) -> float:
    """The first part: the second has a line, a warning and a remedy of its own."""
    return fit.kl_estimate - nats_left_out(float(fit.settings.get("other_modes", 0.0)))
