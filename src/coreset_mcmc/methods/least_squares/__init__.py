"""The default: weights by least squares on windows of draws, from the mode, with rows that matter."""

from coreset_mcmc.methods.least_squares.method import LeastSquares

__all__ = ["LeastSquares"]
