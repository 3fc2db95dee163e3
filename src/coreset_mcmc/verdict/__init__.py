"""Can this coreset posterior be trusted? Numbers, a verdict in three levels, and what no number here can see."""

from coreset_mcmc.verdict.assess import trust
from coreset_mcmc.verdict.verdict import BAD, CARE, GOOD, Finding, Trust

__all__ = ["BAD", "CARE", "GOOD", "Finding", "Trust", "trust"]
