"""Full-data references: what other methods are measured against."""

from coreset_mcmc.references.laplace import Laplace
from coreset_mcmc.references.nuts import NUTS

__all__ = ["NUTS", "Laplace"]
