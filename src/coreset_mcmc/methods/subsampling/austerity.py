"""Austerity MH: accept or reject by a sequential t-test (Korattikara, Chen and Welling 2014).

Rows are added in batches without replacement. After n of N rows with mean change m and sample standard deviation s_l,

    s = s_l / sqrt(n) * sqrt(1 - (n - 1) / (N - 1)),    t = (m - threshold) / s,

and the test stops when the tail probability 1 - F(|t|) of Student's t with n - 1 degrees of freedom is below the error
epsilon, or when n = N. The last factor of s is the finite population correction: without it the test would doubt a mean
that all but a few rows have settled.

The tail is below epsilon exactly if |t| exceeds the upper epsilon quantile. The quantiles of all looks are found once,
so a look costs a comparison; and the comparison is written |m - threshold| > quantile * s, which is well defined when
all changes are equal and s = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Trained, WithoutTraining
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.subsampling.approximate_mh import ApproximateMH, subsampling_problem
from coreset_mcmc.methods.subsampling.discrete_proposals import proposal_for
from coreset_mcmc.methods.subsampling.proposals import Proposal
from coreset_mcmc.methods.subsampling.sequential import Evidence
from coreset_mcmc.posterior.problem import Problem


@pytree
@dataclass(frozen=True)
class TTest:
    """A t-test of the mean change against the threshold after each batch.

    Args:
        quantiles: the upper epsilon quantile of Student's t for each look.
        batch_size: rows added between looks.
    """

    quantiles: jax.Array
    batch_size: int = static()

    @property
    def block_width(self) -> int:
        return self.batch_size

    def looks(self, size: int) -> np.ndarray:
        return looks_at_batches(size, self.batch_size)

    def is_enough(self, evidence: Evidence, threshold: jax.Array, bound: jax.Array, size: int) -> jax.Array:
        del bound
        count = evidence.num_rows
        correction = 1.0 - (count - 1) / max(size - 1, 1)
        variance = evidence.sum_of_squares / jnp.maximum(count - 1, 1) / count * correction
        return jnp.abs(evidence.mean - threshold) > self.quantiles[evidence.look] * jnp.sqrt(jnp.maximum(variance, 0.0))


def looks_at_batches(size: int, batch_size: int) -> np.ndarray:
    """batch_size, 2 batch_size, ..., and ``size`` at the end."""
    return np.append(np.arange(batch_size, size, batch_size), size)


def t_test(size: int, batch_size: int, error: float) -> TTest:
    """The test for ``size`` rows. With an error of 0 it never stops before the last row."""
    freedom = np.maximum(looks_at_batches(size, batch_size) - 1, 1)
    quantiles = -stdtrit(freedom, error) if error > 0 else np.full(freedom.shape, np.inf)
    return TTest(jnp.asarray(quantiles), batch_size)


@pytree
@dataclass(frozen=True)
class AusterityMH(WithoutTraining):
    """Metropolis-Hastings that stops looking at rows when a t-test is sure enough.

    The draws are not exact: decisions are wrong with a small probability, at most ``error`` at each look.

    Args:
        proposal: where a chain might go next; ``None`` is a Gaussian step, or that of the spike-and-slab regression.
        batch_size: rows added between looks, 100 in the paper.
        error: epsilon, the tail probability at which the test stops; 0 looks at all rows and is exact.
        num_chains: how many different starts to take; more chains than that share them.
    """

    proposal: Proposal | None = None
    batch_size: int = static(default=100)
    error: float = 0.05
    num_chains: int = static(default=4)

    name = "austerity-mh"
    uses_coreset_rows = False

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size, at_least=2, fix="One row has no standard deviation; use 100.")
        require_count("num_chains", self.num_chains, at_least=1, fix="Pass how many starts to take.")
        if isinstance(self.error, int | float):
            require(
                0 <= self.error < 0.5,
                "AusterityMH error",
                got=self.error,
                expected="at least 0 and below 0.5",
                fix="It is the tail probability of a t-test, 0.05 in the paper.",
            )

    def check(self, problem: Problem) -> None:
        proposal_for(problem.model, self.proposal).check(problem.position, problem.model)

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del state, kernel
        test = t_test(problem.data.size, self.batch_size, float(self.error))
        chains = subsampling_problem(problem, problem.initial_positions, num_chains)
        sampler = ApproximateMH(proposal_for(problem.model, self.proposal), test)
        return Trained(sampler, chains, None, Law.APPROXIMATE)
