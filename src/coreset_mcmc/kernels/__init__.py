"""Markov kernels that leave a coreset posterior invariant."""

from coreset_mcmc.kernels.base import (
    Kernel,
    KernelInfo,
    KernelState,
    init_chains,
    log_density_of,
    restart_chains,
    step_chains,
)
from coreset_mcmc.kernels.blackjax_adapter import BlackJAX, from_blackjax
from coreset_mcmc.kernels.gaussian import GaussianAutoregression
from coreset_mcmc.kernels.gibbs import SpikeAndSlabGibbs
from coreset_mcmc.kernels.random_walk import RandomWalk
from coreset_mcmc.kernels.slice import HitAndRunSlice, UnivariateSlice
from coreset_mcmc.kernels.whitened_hmc import WhitenedHMC

__all__ = [
    "BlackJAX",
    "GaussianAutoregression",
    "HitAndRunSlice",
    "Kernel",
    "KernelInfo",
    "KernelState",
    "RandomWalk",
    "SpikeAndSlabGibbs",
    "UnivariateSlice",
    "WhitenedHMC",
    "from_blackjax",
    "init_chains",
    "log_density_of",
    "restart_chains",
    "step_chains",
]
