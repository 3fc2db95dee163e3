"""Everything that somebody who writes a method, a kernel or a row selection needs, and nothing that runs.

A method subclasses :class:`Method` (or :class:`WithoutTraining`, or :class:`MovesByKernel` if a kernel moves its
chains), a kernel subclasses :class:`Kernel`, a rule that picks rows subclasses :class:`Selection`. Each is a frozen
dataclass under :func:`pytree`, with numbers as fields and choices as :func:`static` fields.
"""

from coreset_mcmc.core.errors import InputError, require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.data.selection import SelectedRows, Selection
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.driver.steps import Steps
from coreset_mcmc.kernels.base import (
    Kernel,
    KernelInfo,
    KernelState,
    check_continuous,
    check_differentiable,
    init_chains,
    restart_chains,
    step_chains,
)
from coreset_mcmc.methods.contract import Method, Needs, Sampler, Trained, WithoutTraining
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sampling import SamplingInfo, SamplingProblem, sample_coreset
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import CoresetTarget

__all__ = [
    "Batch",
    "CoresetTarget",
    "InputError",
    "Kernel",
    "KernelInfo",
    "KernelState",
    "Key",
    "Law",
    "Method",
    "MovesByKernel",
    "Needs",
    "Position",
    "Problem",
    "Run",
    "Sampler",
    "SamplingInfo",
    "SamplingProblem",
    "SelectedRows",
    "Selection",
    "Status",
    "Steps",
    "Trained",
    "WithoutTraining",
    "check_continuous",
    "check_differentiable",
    "init_chains",
    "pytree",
    "require",
    "require_count",
    "require_positive",
    "restart_chains",
    "run",
    "sample_coreset",
    "static",
    "step_chains",
]
