"""MCMC methods that look at a subsample of the rows in each step."""

from coreset_mcmc.methods.subsampling.austerity import AusterityMH
from coreset_mcmc.methods.subsampling.confidence import ConfidenceMH
from coreset_mcmc.methods.subsampling.discrete_proposals import SpikeAndSlabProposal
from coreset_mcmc.methods.subsampling.mode import ModeSearch
from coreset_mcmc.methods.subsampling.proposals import GaussianProposal, Proposal
from coreset_mcmc.methods.subsampling.sghmc import SGHMC
from coreset_mcmc.methods.subsampling.sgld import SGLD

__all__ = [
    "SGHMC",
    "SGLD",
    "AusterityMH",
    "ConfidenceMH",
    "GaussianProposal",
    "ModeSearch",
    "Proposal",
    "SpikeAndSlabProposal",
]
