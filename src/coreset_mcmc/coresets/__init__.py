"""Coreset constructions."""

from coreset_mcmc.coresets.coreset_mcmc import CoresetMCMC
from coreset_mcmc.coresets.hilbert import Hilbert
from coreset_mcmc.coresets.importance import ImportanceSampling
from coreset_mcmc.coresets.least_squares import LeastSquares
from coreset_mcmc.coresets.quasi_newton import QuasiNewton
from coreset_mcmc.coresets.sparse_hamiltonian_flow import SparseHamiltonianFlow
from coreset_mcmc.coresets.sparse_vi import SparseVI
from coreset_mcmc.coresets.uniform import Uniform

__all__ = [
    "CoresetMCMC",
    "Hilbert",
    "ImportanceSampling",
    "LeastSquares",
    "QuasiNewton",
    "SparseHamiltonianFlow",
    "SparseVI",
    "Uniform",
]
