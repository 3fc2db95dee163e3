"""Ready-made models: the ones of the paper."""

from coreset_mcmc.models.gaussian_location import gaussian_location
from coreset_mcmc.models.linear import linear_regression
from coreset_mcmc.models.logistic import logistic_regression
from coreset_mcmc.models.poisson import poisson_regression

__all__ = ["gaussian_location", "linear_regression", "logistic_regression", "poisson_regression"]
