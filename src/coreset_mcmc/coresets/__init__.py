"""Coreset constructions."""

from coreset_mcmc.coresets.coreset_mcmc import CoresetMCMC

__all__ = ["CoresetMCMC"]
