"""Models written in NumPyro: running them and refusing what has no coreset; what is true of models of any library does
not belong here."""

from coreset_mcmc.interop.numpyro.adapter import from_numpyro

__all__ = ["from_numpyro"]
