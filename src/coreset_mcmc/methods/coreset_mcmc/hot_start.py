"""When to begin moving the weights: the hot-start test of the tuning-free follow-up.

Weights stay at w_0 while the chains run. The trace of each chain's log-density is cut in thirds; a line is fitted to
the middle and to the last third, and

    R = |mean(middle) - mean(last)| / max(residual sd of the two fits).

Training starts when the median of R over chains is at most 0.5. Reaching the cap starts it all the same: the published
code then never trains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.types import pytree, static


class HotStartState(NamedTuple):
    """The trace so far and whether the weights may move."""

    trace: jax.Array
    """Log-densities (max_iterations, K) so far; unused entries are zero."""
    num_iterations: jax.Array
    is_over: jax.Array


@pytree
@dataclass(frozen=True)
class HotStart:
    """Hold the weights until the log-density of the chains has stopped drifting.

    Args:
        threshold: largest median drift at which training starts.
        max_iterations: start anyway after this many.
        interval: iterations between tests.
    """

    threshold: float = 0.5
    max_iterations: int = static(default=10_000)
    interval: int = static(default=30)

    def __post_init__(self) -> None:
        require_positive("HotStart threshold", self.threshold)
        require_count("HotStart max_iterations", self.max_iterations, at_least=1, fix="Use burn_in=0 for none.")
        require_count("HotStart interval", self.interval, at_least=1, fix="Leave it out for 30.")

    def init(self, num_chains: int, dtype: jnp.dtype) -> HotStartState:
        trace = jnp.zeros((self.max_iterations, num_chains), dtype)
        return HotStartState(trace, jnp.zeros((), jnp.int32), jnp.array(False))

    def update(self, state: HotStartState, log_densities: jax.Array, dimension: int) -> HotStartState:
        """Record one iteration and, when due, run the test. Once over, it stays over and the trace is not read.

        Up to 6 values leave two for each line, and no residual.
        """
        count = state.num_iterations + ~state.is_over
        trace = state.trace.at[count - 1].set(log_densities)
        is_due = ~state.is_over & (count >= 3 * dimension) & (count > 6) & (count % self.interval == 0)
        passes = jax.lax.cond(
            is_due, lambda: jnp.median(drift(trace, count)) <= self.threshold, lambda: jnp.array(False)
        )
        return HotStartState(trace, count, state.is_over | passes | (count >= self.max_iterations))

    def shortfall(self, state: HotStartState) -> str:
        """What to say if the weights were let go without having passed the test."""
        if int(state.num_iterations) < self.max_iterations:
            return ""
        return (
            f"The chains were still drifting after burn_in=HotStart(max_iterations={self.max_iterations:,}); training "
            "began all the same. Allow more iterations, or start closer with initvals."
        )


def drift(trace: jax.Array, count: jax.Array) -> jax.Array:
    """R for each chain (K,), from the first ``count`` entries of a trace (capacity, K)."""
    segment = -(-count // 3)
    trace = trace - trace[count - 1]  # so that a constant trace is exactly zero
    first = _line_fit(trace, count - 2 * segment, segment)
    second = _line_fit(trace, count - segment, segment)
    scale = jnp.maximum(first.residual_deviation, second.residual_deviation)
    gap = jnp.abs(first.mean - second.mean)
    return jnp.where(gap == 0.0, 0.0, gap / scale)


class _LineFit(NamedTuple):
    mean: jax.Array
    residual_deviation: jax.Array


def _line_fit(trace: jax.Array, start: jax.Array, length: jax.Array) -> _LineFit:
    """Least squares of an intercept and a slope on ``trace[start : start + length]``, column by column."""
    places = jnp.arange(trace.shape[0])
    inside = ((places >= start) & (places < start + length))[:, None]
    time = jnp.where(inside, (places - start)[:, None] - 0.5 * (length - 1.0), 0.0)
    mean = jnp.sum(jnp.where(inside, trace, 0.0), axis=0) / length
    deviation = jnp.where(inside, trace - mean, 0.0)
    slope = jnp.sum(time * deviation, axis=0) / jnp.sum(time**2)
    squares = jnp.sum((deviation - slope * time) ** 2, axis=0)
    return _LineFit(mean, jnp.sqrt(squares / (length - 2.0)))
