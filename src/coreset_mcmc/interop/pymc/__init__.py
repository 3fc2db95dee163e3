"""Models written in PyMC, version 5 or 6: reading them and refusing what has no coreset; what is true of models of any
library does not belong here."""

from coreset_mcmc.interop.pymc.adapter import from_pymc

__all__ = ["from_pymc"]
