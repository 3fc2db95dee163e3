"""Which kernel moves the chains where the user has named none.

Most models get their kernel from the method that trains them, or a slice kernel that a pilot run has shaped. A model of
a special kind says so in ``Model.structure``, and the kernel that is made for that kind is found here: a new kind of
model is one line in :data:`KERNELS_OF_STRUCTURES`. Positions with discrete parts get slices by steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coreset_mcmc.core.types import Position
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.gibbs import SpikeAndSlabGibbs
from coreset_mcmc.kernels.mixed_slice import MixedSlice, real_coordinates
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.models.model import Model, SpikeAndSlab

KERNELS_OF_STRUCTURES: Mapping[type, Callable[[], Kernel]] = {SpikeAndSlab: SpikeAndSlabGibbs}


def kernel_for_structure(model: Model) -> Kernel | None:
    """The kernel that is made for this kind of model; None if the model is of no special kind."""
    make = KERNELS_OF_STRUCTURES.get(type(model.structure))
    return None if make is None else make()


def kernel_for_discrete(position: Position) -> Kernel | None:
    """Slices by steps for positions with whole numbers or truth values; None if all are real."""
    return None if real_coordinates(position).all() else MixedSlice()


def kernel_or_default(kernel: Kernel | None) -> Kernel:
    """The kernel of a method that was given none: hit-and-run, which asks nothing of a continuous model."""
    return HitAndRunSlice() if kernel is None else kernel
