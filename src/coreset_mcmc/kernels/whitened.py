"""What kernels share that move in coordinates whitened by a known covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coreset_mcmc.core.errors import require_positive
from coreset_mcmc.core.types import Position
from coreset_mcmc.kernels.base import Kernel, check_continuous, check_differentiable
from coreset_mcmc.kernels.shape import check_factor
from coreset_mcmc.posterior.target import CoresetTarget


@dataclass(frozen=True)
class Whitened(Kernel):
    """Gradients, a factor L (d, d) of the covariance, and a step size in standard deviations."""

    scale: Any
    step_size: Any = 0.5

    caches_gradient = True

    def __post_init__(self) -> None:
        require_positive(f"{type(self).__name__} step_size", self.step_size)

    def check(self, position: Position, target: CoresetTarget) -> None:
        name = type(self).__name__
        check_continuous(name, position)
        check_differentiable(name, target)
        check_factor(f"{name} scale", self.scale, position)
