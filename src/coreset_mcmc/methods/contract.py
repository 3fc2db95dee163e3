"""The contract of a method: what ``fit`` asks for, and what a method needs from a model.

A method works in two stages, each a sequence of steps that the one driver runs. *Training* prepares: it moves the
weights of a coreset, fits a flow, finds a mode; a method that needs no preparation is a :class:`WithoutTraining`. Then
:meth:`Method.finish` hands over a :class:`Sampler`, whose every step is one draw of each chain. What most methods do
alike is the default of a hook; nothing outside asks a method for more than is written here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import dimension
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.steps import Steps
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sizes import default_rows, rows_to_start_from
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.newton import NewtonSearch
from coreset_mcmc.posterior.problem import Problem


@dataclass(frozen=True)
class Needs:
    """What a method asks of the model."""

    gradient: bool = False
    """The log-density can be differentiated with respect to the position."""
    continuous: bool = False
    """No part of the position is discrete."""
    bound: bool = False
    """The model bounds how much a row's log-likelihood can change: :class:`~coreset_mcmc.models.model.ChangeBound`."""

    def unmet(self, model: Model, position: Position) -> list[str]:
        """What this model lacks, in words."""
        lacking = []
        if self.gradient and not model.differentiable:
            lacking.append("gradients, which the model declares not to have")
        discrete = discrete_parts(position)
        if (self.continuous or self.gradient) and discrete:
            lacking.append(f"continuous positions, but {', '.join(discrete)} is discrete")
        if self.bound and model.change_bound is None:
            lacking.append("a bound on the change of a row's log-likelihood (Model.change_bound)")
        return lacking


class Sampler(Steps):
    """Steps of which each is one draw of every chain.

    The info has the fields of :class:`~coreset_mcmc.methods.sampling.SamplingInfo`; it may have more.
    """

    num_tuning: int = 0
    """Draws at the start that must be thrown away."""

    may_be_replaced: ClassVar[bool] = False
    """Whether another sampler of the same target may take over where the chains mix badly."""

    def collect(self, history: Any) -> Any:
        """The info of all draws that are kept, with leading axes (draw, chain), once all of them are there."""
        return history


class Trained(NamedTuple):
    """What training leaves for sampling."""

    sampler: Sampler
    problem: Any
    """What the sampler runs on."""
    coreset: SelectedRows | None
    """Row numbers and final weights, or None if the method has no coreset."""
    law: Law
    """What the draws are draws of."""


class Method(Steps):
    """A coreset construction, a subsampling MCMC method or a full-data reference.

    A subclass is a frozen dataclass that :func:`~coreset_mcmc.core.types.pytree` registers: numbers are fields, choices
    are :func:`~coreset_mcmc.core.types.static` fields, so that another number compiles nothing anew.
    """

    needs: ClassVar[Needs] = Needs()

    works_by_passes: ClassVar[bool] = False
    """Whether ``problem.data`` are rows to be passed over, wherever they are; otherwise arrays of compiled programs."""

    uses_coreset_rows: ClassVar[bool] = True
    """Whether ``problem.rows`` must hold a selection of rows made beforehand."""

    @property
    def num_chains(self) -> int:
        """Starts that training takes from ``problem.initial_positions``."""
        return 1

    @property
    def room(self) -> int:
        """Rows that programs are made for, if there are more than the coreset has."""
        return 0

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Training steps if nothing stops it early; 0 if there is nothing to train."""

    @abstractmethod
    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        """From the last state of training to a sampler of ``num_chains`` chains.

        ``kernel`` is the user's choice for sampling, if there is one; methods that sample in their own way ignore it.
        """

    def check(self, problem: Problem) -> None:
        """Raise an :class:`~coreset_mcmc.core.errors.InputError` if this method cannot work on this problem."""
        del problem

    def adapted(self, problem: Problem, *, keeps_rows: bool) -> Method:
        """The method as it is going to run on this problem.

        ``keeps_rows``: the rows of the problem are the user's choice, which no method replaces by its own.
        """
        del problem, keeps_rows
        return self

    def otherwise(self, model: Model, position: Position, coreset_size: int, *, has_term: bool) -> Method | None:
        """What to try if the coreset, with a Gaussian term or without, as this method has chosen, leads nowhere."""
        del model, position, coreset_size, has_term
        return None

    def shortfall(self, state: Any) -> str:
        """What a bound on steps has ended before its own rule did, in words for ``fit.settings`` and a warning."""
        del state
        return ""

    def in_words(self, problem: Problem, coreset: SelectedRows) -> Mapping[str, str]:
        """What the method has decided by itself, and why: entries of ``fit.settings``."""
        del problem, coreset
        return {}

    def default_rows(self, model: Model, position: Position) -> int:
        """Rows of a coreset whose size nobody has chosen."""
        del model
        return default_rows(dimension(position))

    def fewest_rows(self, model: Model, position: Position) -> int:
        """Rows from which the search for a size starts."""
        del model
        return rows_to_start_from(dimension(position))

    def resized(self, coreset_size: int) -> Method:
        """The same method for a coreset of another size, for methods that know theirs."""
        del coreset_size
        return self

    def with_room(self, coreset_size: int) -> Method:
        """The same method with programs that serve coresets of up to this size, for methods that can."""
        del coreset_size
        return self

    def expected_sampler(self, problem: Problem, num_chains: int) -> Trained | None:
        """A sampler like the one that :meth:`finish` hands over in all but its numbers, to be compiled meanwhile."""
        del problem, num_chains
        return None

    @property
    def mode_search(self) -> NewtonSearch | None:
        """How it finds a mode of all rows, for methods whose chains begin where modes were looked for."""
        return None

    @property
    def lacks_kernel(self) -> bool:
        """Whether its chains move by a kernel that nobody has chosen."""
        return False

    needs_pilot: ClassVar[bool] = False
    """Whether such a kernel is to be shaped by a pilot run; otherwise the method shapes its own."""

    def with_kernel(self, kernel: Kernel) -> Method:
        """The same method, moving its chains by this kernel; only for methods that may lack one."""
        del kernel
        return self


class NothingToTrain(NamedTuple):
    """The state, and with the counts the info, of a training stage that is over before it begins."""

    done: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


class WithoutTraining(Method):
    """A method whose training stage is empty."""

    @property
    def max_steps(self) -> int:
        return 0

    def init(self, key: Key, problem: Problem) -> NothingToTrain:
        del key, problem
        return NothingToTrain(jnp.array(True), jnp.zeros((), jnp.int64), jnp.asarray(Status.OK.value, jnp.int32))

    def step(self, key: Key, state: NothingToTrain, problem: Problem) -> tuple[NothingToTrain, NothingToTrain]:
        del key, problem
        return state, state

    def describe(self, info: NothingToTrain) -> str:
        del info
        return "nothing to train"


def discrete_parts(position: Position) -> list[str]:
    """Names of the leaves that are not floating-point numbers."""
    return [
        f"position{jax.tree_util.keystr(path)} ({jnp.result_type(leaf)})"
        for path, leaf in jax.tree_util.tree_leaves_with_path(position)
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]


def check_needs(name: str, needs: Needs, problem: Problem, alternatives: list[str] | None = None) -> None:
    """Refuse a model that lacks what a method needs, and name the methods that would work."""
    lacking = needs.unmet(problem.model, problem.position)
    if lacking:
        others = f" Methods that would work: {', '.join(alternatives)}." if alternatives else ""
        raise InputError(
            f"method {name}",
            got=f"model {problem.model.name!r}",
            expected=" and ".join(lacking),
            fix="Choose another method, or change the model." + others,
        )
