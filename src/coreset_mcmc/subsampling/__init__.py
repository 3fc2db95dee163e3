"""MCMC methods that look at a subsample of the rows in each step."""

from coreset_mcmc.subsampling.austerity import AusterityMH
from coreset_mcmc.subsampling.confidence import ConfidenceMH
from coreset_mcmc.subsampling.discrete_proposals import SpikeAndSlabProposal
from coreset_mcmc.subsampling.mode import ModeSearch
from coreset_mcmc.subsampling.proposals import GaussianProposal, Proposal
from coreset_mcmc.subsampling.sghmc import SGHMC
from coreset_mcmc.subsampling.sgld import SGLD

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
