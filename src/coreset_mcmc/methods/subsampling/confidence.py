"""Confidence MH: accept or reject by an empirical Bernstein bound (Bardenet, Doucet and Holmes 2014, 2017).

The test looks after n = 1, 2, 4, ... rows. At the j-th look, with error delta_j = (p - 1) / (p j^p) delta so that the
errors of all looks sum to less than delta, and with |delta_n| <= C for every row of the data,

    c_j = sd_n sqrt(2 log(3 / delta_j) / n) + 6 C log(3 / delta_j) / n

bounds the distance of the mean of n rows from the mean of all (Audibert, Munos and Szepesvari 2009; the range of the
changes is at most 2 C). The test stops when |mean - threshold| >= c_j or n = N. One row has no standard deviation, so
it never stops there.

C must hold for rows that were not seen. A model may provide that (:class:`~coreset_mcmc.models.model.ChangeBound`);
logistic regression does, and the decisions are then right with probability 1 - delta. Where a model has none, the
largest change among *all* rows seen so far takes its place. That is a heuristic, as in the paper: a row not yet seen
may change more, and then nothing is guaranteed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Needs, Trained, WithoutTraining, check_needs
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.subsampling.approximate_mh import ApproximateMH, subsampling_problem
from coreset_mcmc.methods.subsampling.discrete_proposals import proposal_for
from coreset_mcmc.methods.subsampling.proposals import Proposal
from coreset_mcmc.methods.subsampling.sequential import Evidence
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem

FIRST_BLOCK = 64
"""Rows evaluated at once at the start.

With |mean| <= C the bound asks for at least 6 log(3 / delta_j) rows, about 50, unless the threshold alone decides. So
the first looks rarely end the test, and a block that holds them all wastes little. All its rows count as evaluated.
"""


@pytree
@dataclass(frozen=True)
class EmpiricalBernstein:
    """The bound c_j at growing numbers of rows.

    Args:
        error: delta, the probability of a wrong decision if the bound on changes is valid.
        power: p > 1, how fast the errors of the looks fall.
        growth: each look has this many times the rows of the last.
        has_bound: whether C is given; otherwise it is the largest change seen so far.
    """

    error: float
    power: float
    growth: float = static(default=2.0)
    has_bound: bool = static(default=False)

    @property
    def block_width(self) -> int:
        return FIRST_BLOCK

    def looks(self, size: int) -> np.ndarray:
        counts = [1]
        while counts[-1] < size:
            counts.append(min(size, max(math.ceil(self.growth * counts[-1]), counts[-1] + 1)))
        return np.array(counts)

    def is_enough(self, evidence: Evidence, threshold: jax.Array, bound: jax.Array, size: int) -> jax.Array:
        del size
        count = evidence.num_rows
        error = (self.power - 1.0) / (self.power * (evidence.look + 1.0) ** self.power) * self.error
        doubt = jnp.log(3.0 / error)
        deviation = jnp.sqrt(evidence.sum_of_squares / count)
        largest = bound if self.has_bound else evidence.largest
        distance = deviation * jnp.sqrt(2.0 * doubt / count) + 6.0 * largest * doubt / count
        return (count > 1) & (jnp.abs(evidence.mean - threshold) >= distance)


@pytree
@dataclass(frozen=True)
class ConfidenceMH(WithoutTraining):
    """Metropolis-Hastings that stops looking at rows when a concentration bound is sure enough.

    Args:
        proposal: where a chain might go next; ``None`` is a Gaussian step, or that of the spike-and-slab regression.
        error: delta, 0.05 in the paper; 0 looks at all rows and is exact.
        growth: each look has this many times the rows of the last; a choice, compiled in.
        power: p > 1, how fast the errors of the looks fall.
        bound: "model" asks the model for a bound on the change of any row, "heuristic" takes the largest change seen so
            far (no guarantee), "auto" is the model's bound where there is one and the heuristic otherwise.
        num_chains: how many different starts to take; more chains than that share them.
    """

    proposal: Proposal | None = None
    error: float = 0.05
    growth: float = static(default=2.0)
    power: float = 2.0
    bound: Literal["auto", "model", "heuristic"] = static(default="auto")
    num_chains: int = static(default=4)

    name = "confidence-mh"
    uses_coreset_rows = False

    def __post_init__(self) -> None:
        require_count("num_chains", self.num_chains, at_least=1, fix="Pass how many starts to take.")
        require(
            self.bound in ("auto", "model", "heuristic"),
            "ConfidenceMH bound",
            got=repr(self.bound),
            expected='"auto", "model" or "heuristic"',
            fix='Leave it at "auto".',
        )
        require(
            self.growth > 1,
            "ConfidenceMH growth",
            got=self.growth,
            expected="a number above 1",
            fix="Use 2 to double the rows at each look.",
        )
        if isinstance(self.power, int | float):
            require(
                self.power > 1,
                "ConfidenceMH power",
                got=self.power,
                expected="a number above 1",
                fix="The errors of all looks must have a finite sum; use 2.",
            )
        if isinstance(self.error, int | float):
            require(
                0 <= self.error < 1,
                "ConfidenceMH error",
                got=self.error,
                expected="at least 0 and below 1",
                fix="It is the probability of a wrong decision, 0.05 in the paper.",
            )

    def check(self, problem: Problem) -> None:
        check_needs(self.name, Needs(bound=self.bound == "model"), problem)
        proposal_for(problem.model, self.proposal).check(problem.position, problem.model)

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del state, kernel
        has_bound = self.uses_model_bound(problem.model)
        test = EmpiricalBernstein(self.error, self.power, self.growth, has_bound)
        chains = subsampling_problem(problem, problem.initial_positions, num_chains)
        sampler = ApproximateMH(proposal_for(problem.model, self.proposal), test, has_bound)
        return Trained(sampler, chains, None, Law.APPROXIMATE)

    def uses_model_bound(self, model: Model) -> bool:
        """Whether decisions rest on the model's bound rather than on the heuristic."""
        return self.bound == "model" or (self.bound == "auto" and model.change_bound is not None)
