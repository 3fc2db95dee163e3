"""Models written in PyMC."""

from coreset_mcmc.interop.pymc.adapter import from_pymc

__all__ = ["from_pymc"]
