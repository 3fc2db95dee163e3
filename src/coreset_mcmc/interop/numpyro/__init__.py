"""Models written in NumPyro."""

from coreset_mcmc.interop.numpyro.adapter import from_numpyro

__all__ = ["from_numpyro"]
