"""Methods whose chains move by an exchangeable kernel: the part of the contract that is about it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.choice import kernel_or_default
from coreset_mcmc.methods.contract import Method


class MovesByKernel(Method):
    """A dataclass with a field ``kernel``; None leaves the choice to whoever runs the method."""

    kernel: Kernel | None

    needs_pilot: ClassVar[bool] = True

    @property
    def lacks_kernel(self) -> bool:
        return self.kernel is None

    @property
    def moving_kernel(self) -> Kernel:
        """The one that was chosen, or a slice kernel as it comes."""
        return kernel_or_default(self.kernel)

    def with_kernel(self, kernel: Kernel) -> Method:
        return replace(self, kernel=kernel)  # type: ignore[type-var]
