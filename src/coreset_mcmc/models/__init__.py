"""Ready-made models: the ones of the paper, and some whose posterior is far from a Gaussian."""

from coreset_mcmc.models.bradley_terry import bradley_terry, bradley_terry_data
from coreset_mcmc.models.gaussian_location import gaussian_location
from coreset_mcmc.models.hierarchical import hierarchical_logistic_regression, hierarchical_logistic_regression_data
from coreset_mcmc.models.linear import linear_regression
from coreset_mcmc.models.logistic import logistic_regression
from coreset_mcmc.models.mixture import gaussian_mixture, gaussian_mixture_data
from coreset_mcmc.models.poisson import poisson_regression
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.models.sparse import least_squares_start, sparse_regression, sparse_regression_data
from coreset_mcmc.models.unidentified import unidentified_regression, unidentified_regression_data

__all__ = [
    "Coefficients",
    "Regressors",
    "RowRegressors",
    "bradley_terry",
    "bradley_terry_data",
    "gaussian_location",
    "gaussian_mixture",
    "gaussian_mixture_data",
    "hierarchical_logistic_regression",
    "hierarchical_logistic_regression_data",
    "least_squares_start",
    "linear_regression",
    "logistic_regression",
    "poisson_regression",
    "sparse_regression",
    "sparse_regression_data",
    "unidentified_regression",
    "unidentified_regression_data",
]
