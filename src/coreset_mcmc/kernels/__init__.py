"""Markov kernels that leave a coreset posterior invariant, and which one is chosen when. No training here."""

from coreset_mcmc.kernels.base import (
    Kernel,
    KernelInfo,
    KernelState,
    init_chains,
    restart_chains,
    step_chains,
)
from coreset_mcmc.kernels.blackjax_adapter import BlackJAX, from_blackjax
from coreset_mcmc.kernels.choice import kernel_for_structure, kernel_or_default
from coreset_mcmc.kernels.gaussian import GaussianAutoregression
from coreset_mcmc.kernels.gibbs import SpikeAndSlabGibbs
from coreset_mcmc.kernels.hmc_and_lines import HMCAndLines
from coreset_mcmc.kernels.mixed_slice import MixedSlice
from coreset_mcmc.kernels.random_walk import RandomWalk
from coreset_mcmc.kernels.slice import HitAndRunSlice, UnivariateSlice
from coreset_mcmc.kernels.whitened_hmc import WhitenedHMC
from coreset_mcmc.kernels.whitened_nuts import WhitenedNUTS

__all__ = [
    "BlackJAX",
    "GaussianAutoregression",
    "HMCAndLines",
    "HitAndRunSlice",
    "Kernel",
    "KernelInfo",
    "KernelState",
    "MixedSlice",
    "RandomWalk",
    "SpikeAndSlabGibbs",
    "UnivariateSlice",
    "WhitenedHMC",
    "WhitenedNUTS",
    "from_blackjax",
    "init_chains",
    "kernel_for_structure",
    "kernel_or_default",
    "restart_chains",
    "step_chains",
]
