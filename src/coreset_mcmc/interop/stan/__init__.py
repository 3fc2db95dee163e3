"""Stan programs with a log-likelihood for each row; what is true of models of any library does not belong here."""

from coreset_mcmc.interop.stan.adapter import from_stan

__all__ = ["from_stan"]
