"""Every way from a problem to draws, under one contract, with their registry. What runs their steps is the driver."""

from coreset_mcmc.methods.contract import Method
from coreset_mcmc.methods.coreset_mcmc import CoresetMCMC
from coreset_mcmc.methods.full_data import NUTS, Laplace
from coreset_mcmc.methods.least_squares import LeastSquares
from coreset_mcmc.methods.other_coresets import (
    Hilbert,
    ImportanceSampling,
    QuasiNewton,
    SparseHamiltonianFlow,
    SparseVI,
    Uniform,
)
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH

__all__ = [
    "NUTS",
    "SGHMC",
    "SGLD",
    "AusterityMH",
    "ConfidenceMH",
    "CoresetMCMC",
    "Hilbert",
    "ImportanceSampling",
    "Laplace",
    "LeastSquares",
    "Method",
    "QuasiNewton",
    "SparseHamiltonianFlow",
    "SparseVI",
    "Uniform",
]
