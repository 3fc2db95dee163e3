"""Hamiltonian trajectories, and slices along those parameters that are far wider than any step of theirs.

For a level of a factor without a single event the likelihood is flat on one side and falls steeply on the other: the
posterior is a plain, as wide as the prior, behind a wall. Trajectories must take the wall in small steps, and would
need thousands of them across the plain. A slice along that one parameter crosses it at once, and asks for no gradient;
everything else moves by trajectories that are as wide as the wall allows. Both leave the target as it is, so one after
the other does, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import KernelInfo, KernelState
from coreset_mcmc.kernels.slice import UnivariateSlice, slices_along
from coreset_mcmc.kernels.whitened import WhitenedState
from coreset_mcmc.kernels.whitened_hmc import WhitenedHMC
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class HMCAndLines(WhitenedHMC):
    """A trajectory, then a slice along each of some parameters.

    Args:
        scale: L (d, d), a factor of a covariance, narrow along those parameters.
        step_size: in its standard deviations.
        places: of those parameters (k,) in the flattened position.
        widths: their standard deviations (k,), with which brackets begin.
        slices: how far brackets grow and shrink, in units of the widths.
    """

    places: Any = ()
    widths: Any = ()
    slices: UnivariateSlice = static(default=UnivariateSlice(width=1.0))

    has_data_dependent_loops = True

    def check(self, position: Position, target: CoresetTarget) -> None:
        super().check(position, target)
        dimension = sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))
        places = np.asarray(self.places)
        require(
            places.ndim == 1
            and places.shape == np.shape(self.widths)
            and bool(np.all((places >= 0) & (places < dimension))),
            "HMCAndLines places and widths",
            got=f"places {places} and widths of shape {np.shape(self.widths)}",
            expected=f"as many widths as places, each of them one of the {dimension} parameters",
            fix="Number the parameters from zero in the order of the flattened position.",
        )

    def step(self, key: Key, state: WhitenedState, target: CoresetTarget) -> tuple[WhitenedState, KernelInfo]:
        move_key, line_key = jax.random.split(key)
        moved, trajectory = super().step(move_key, state, target)
        flat, unravel = ravel_pytree(moved.position)
        places, widths = jnp.asarray(self.places), jnp.asarray(self.widths, flat.dtype)

        def direction_of(number: jax.Array) -> Position:
            return unravel(jnp.zeros_like(flat).at[places[number]].set(widths[number]))

        start = KernelState(moved.position, moved.log_density)
        slid, lines = slices_along(line_key, start, target, len(self.places), direction_of, self.slices)
        return self.init(slid.position, target), KernelInfo(
            acceptance_rate=trajectory.acceptance_rate,
            num_evaluations=trajectory.num_evaluations + lines.num_evaluations + 1,
            diverging=trajectory.diverging | lines.diverging,
        )
