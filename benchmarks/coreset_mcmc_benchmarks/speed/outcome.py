"""What a contestant hands back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Outcome(NamedTuple):
    """Draws, and an account of the time; whatever is not training or sampling counts towards the total alone."""

    draws: dict[str, np.ndarray]
    training_seconds: float
    """Tuning, search or training, compilation apart."""
    training_compile_seconds: float
    sampling_seconds: float
    """The kept draws alone, compilation apart."""
    evaluations: float
    """Log-likelihoods of single rows; a gradient counts as one."""
    coreset_size: int | None = None
    kl_estimate: float = float("nan")
    note: str = ""
    """Settings that a reader must know."""
    warnings: str = ""
    free_seconds: float = 0.0
    """Spent on what the contestant is given for nothing; not part of any time."""
    compile_seconds: float | None = None
    """Where JAX does not tell; not a number if nobody can."""
