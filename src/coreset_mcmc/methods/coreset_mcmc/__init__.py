"""Coreset MCMC as published (Chen and Campbell 2024): gradients of the KL, and what takes steps along them."""

from coreset_mcmc.methods.coreset_mcmc.method import CoresetMCMC

__all__ = ["CoresetMCMC"]
