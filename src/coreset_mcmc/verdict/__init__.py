"""Can this coreset posterior be trusted? Numbers, a verdict in three levels, and what no number here can see.

Here belongs what judges a finished fit, with the thresholds and their reasons. It may fit again with other rows, but it
changes nothing about the fit, and how a verdict looks on a page or in a terminal is not decided here.
"""

from coreset_mcmc.verdict.assess import trust
from coreset_mcmc.verdict.verdict import BAD, CARE, GOOD, Finding, Trust

__all__ = ["BAD", "CARE", "GOOD", "Finding", "Trust", "trust"]
