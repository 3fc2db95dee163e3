"""The uniform coreset: the rows as selected, with their initial weights, and nothing trained.

Section 4 of the paper compares with it. M rows that each stand for N/M of the data give a posterior of about the right
width in the wrong place: for a well-specified regular model with d parameters the KL divergence between Gaussian
approximations is about d N / (2 M) (Section 3.4, whose formula lacks the factor d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coreset_mcmc.core.types import pytree
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import NothingToTrain, Trained, WithoutTraining
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem


@pytree
@dataclass(frozen=True)
class Uniform(WithoutTraining, MovesByKernel):
    """Sample with the selected rows and the weights that the selection gave them.

    With a uniform selection of rows all weights are N/M; with a stratified one N_g / M_g in stratum g.

    Args:
        kernel: moves each chain. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot run.
    """

    kernel: Kernel | None = None

    name = "uniform"

    def check(self, problem: Problem) -> None:
        self.moving_kernel.check(problem.position, problem.target(problem.initial_weights))

    def finish(self, state: NothingToTrain, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del state
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(problem.initial_weights))
        return sample_coreset(problem, coreset, problem.initial_positions, kernel or self.moving_kernel, num_chains)
