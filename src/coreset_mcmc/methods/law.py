"""What the draws of a fit are draws of: a method knows it, a result keeps it, the verdict asks for it."""

from __future__ import annotations

from enum import StrEnum


class Law(StrEnum):
    """The distribution behind the draws, as it is saved and shown."""

    CORESET = "coreset posterior"
    FULL = "full posterior"
    """Chains on all rows, right in the long run."""
    APPROXIMATE = "approximation of the full posterior"
    """Subsampling MCMC, flows, Gaussians: how far off is not measured here."""
    REWEIGHTED = "full posterior, reweighted"
    EXACT = "full posterior, exact"
