"""Other constructions of a coreset, which the paper compares with. Each is one file."""

from coreset_mcmc.methods.other_coresets.hilbert import Hilbert
from coreset_mcmc.methods.other_coresets.importance import ImportanceSampling
from coreset_mcmc.methods.other_coresets.quasi_newton import QuasiNewton
from coreset_mcmc.methods.other_coresets.sparse_hamiltonian_flow import SparseHamiltonianFlow
from coreset_mcmc.methods.other_coresets.sparse_vi import SparseVI
from coreset_mcmc.methods.other_coresets.uniform import Uniform

__all__ = ["Hilbert", "ImportanceSampling", "QuasiNewton", "SparseHamiltonianFlow", "SparseVI", "Uniform"]
