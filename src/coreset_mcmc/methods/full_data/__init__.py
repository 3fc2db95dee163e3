"""Full-data references: what other methods are measured against."""

from coreset_mcmc.methods.full_data.laplace import Laplace
from coreset_mcmc.methods.full_data.nuts import NUTS

__all__ = ["NUTS", "Laplace"]
