"""A window's worth of draws: from chains on the coreset posterior, or at the start from a Gaussian."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.compilation import compiler, quick_compilation
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel, init_chains
from coreset_mcmc.kernels.mixed_slice import MixedSlice
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.contract import discrete_parts
from coreset_mcmc.methods.draws import Draws, collect_draws
from coreset_mcmc.methods.trajectory_draws import trajectories_ahead, trajectory_draws
from coreset_mcmc.posterior.target import CoresetTarget

FEWEST_TUNING = 40
"""Steps of each chain in which trajectories find their step size, in every round."""


def kernel_or_slices(kernel: Kernel | None, scale: Any, position: Position) -> Kernel:
    """The user's kernel, or slice sampling along directions of the shape (d, d), by steps where a part is discrete."""
    if kernel is not None:
        return kernel
    if discrete_parts(position):
        return MixedSlice(scale=scale)
    return HitAndRunSlice(scale=scale, num_directions=scale.shape[0])


@pytree
@dataclass(frozen=True)
class WindowDrawing:
    """How windows are drawn; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    kernel: Kernel | None
    num_draws: int = static()
    num_chains: int = static()
    discard: float = static()
    by_trajectories: bool = static()
    """Whether the chains move by Hamiltonian trajectories."""

    @property
    def num_kept(self) -> int:
        """Draws of each chain."""
        return self.num_draws // self.num_chains

    @property
    def num_discarded(self) -> int:
        """Steps of each chain before them."""
        wanted = math.ceil(self.num_kept * self.discard / (1.0 - self.discard))
        return max(wanted, FEWEST_TUNING) if self.by_trajectories else wanted

    def draw(self, key: Key, target: CoresetTarget, positions: Position, scale: Any) -> Draws:
        """Equal shares of all chains, which go on from these positions, without their first steps; on the host."""
        if self.by_trajectories:
            num_steps = self.num_kept + self.num_discarded
            return trajectory_draws(key, positions, target, scale, num_steps, self.num_discarded)
        drawn: Draws = jax.tree.map(np.asarray, _compiled()(self, key, target, positions, scale))
        return drawn

    def by_kernel(self, key: Key, target: CoresetTarget, positions: Position, scale: Any) -> Draws:
        """The same by a kernel, to be compiled as one program."""
        kernel = kernel_or_slices(self.kernel, scale, positions)
        chains = init_chains(kernel, positions, target)
        num_steps = self.num_kept + self.num_discarded
        return collect_draws(kernel, key, chains, target, num_steps, self.num_discarded)

    def ahead(self, key: Key, target: CoresetTarget, positions: Position, scale: Any) -> Callable[[], None]:
        """What compiles the programs behind :meth:`draw`, traced."""
        if self.by_trajectories:
            return trajectories_ahead(positions, target, scale)
        return compiler(_compiled().trace(self, key, target, positions, scale))


@cache
def _compiled() -> Any:
    """Windows are drawn a few times: compiled soon rather than fast."""
    return jax.jit(WindowDrawing.by_kernel, compiler_options=quick_compilation(1) or None)
