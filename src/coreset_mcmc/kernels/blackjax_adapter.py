"""Any BlackJAX kernel as a kernel of ours.

BlackJAX states cache the log-density, and often its gradient, so ``init`` is what refreshes them when the weights move.
Parameters that are floats or arrays are arguments of the compiled program; everything else is part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel, KernelInfo, check_continuous, check_differentiable
from coreset_mcmc.kernels.blackjax_state import BlackJAXState
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class BlackJAX(Kernel):
    """A BlackJAX sampling algorithm. Build it with :func:`from_blackjax`."""

    numbers: dict[str, Any]
    choices: tuple[tuple[str, Any], ...] = static(default=())
    build_choices: tuple[tuple[str, Any], ...] = static(default=())
    init_function: Callable[..., Any] = static(kw_only=True)
    build_function: Callable[..., Any] = static(kw_only=True)
    name: str = static(default="blackjax")
    caches_gradient: bool = static(default=True)

    has_data_dependent_loops = True

    def check(self, position: Position, target: CoresetTarget) -> None:
        check_continuous(self.name, position)
        if self.caches_gradient:
            check_differentiable(self.name, target)

    def init(self, position: Position, target: CoresetTarget) -> BlackJAXState:
        return BlackJAXState(self.init_function(position, target.log_density))

    def step(self, key: Key, state: BlackJAXState, target: CoresetTarget) -> tuple[BlackJAXState, KernelInfo]:
        kernel = self.build_function(**dict(self.build_choices))
        moved, info = kernel(key, state.inner, target.log_density, **self.numbers, **dict(self.choices))
        return BlackJAXState(moved), _common_info(info, moved.logdensity.dtype, dict(self.build_choices))


def _common_info(info: Any, dtype: Any, build_choices: dict[str, Any]) -> KernelInfo:
    """Our names for what BlackJAX reports. Counts are exact except for the slice samplers' acceptance tests."""
    accepted = getattr(info, "acceptance_rate", getattr(info, "is_accepted", 1.0))
    if hasattr(info, "num_integration_steps"):
        evaluations = info.num_integration_steps
    elif hasattr(info, "num_shrink"):
        num_lines = sum(leaf.size for leaf in jax.tree.leaves(info.bracket_left))
        evaluations = info.num_shrink + num_lines * 2 * (build_choices.get("max_expansions", 10) + 1)
    else:
        evaluations = 1
    return KernelInfo(
        acceptance_rate=jnp.asarray(accepted, dtype),
        num_evaluations=jnp.asarray(evaluations, jnp.int32),
        diverging=jnp.asarray(getattr(info, "is_divergent", False)),
    )


def from_blackjax(algorithm: Any, **parameters: Any) -> BlackJAX:
    """Adapt a BlackJAX algorithm.

    Args:
        algorithm: e.g. ``blackjax.nuts``, ``blackjax.hmc``, ``blackjax.mala``, ``blackjax.slice_sampling``.
        **parameters: what the algorithm wants, e.g. ``step_size=0.1, inverse_mass_matrix=numpy.ones(d)``.
    """
    init_function, build_function = getattr(algorithm, "init", None), getattr(algorithm, "build_kernel", None)
    if not (callable(init_function) and callable(build_function)):
        raise InputError(
            "from_blackjax",
            got=repr(algorithm),
            expected="a BlackJAX algorithm with init and build_kernel",
            fix="Pass the algorithm itself, e.g. blackjax.nuts, not the result of calling it.",
        )
    name = init_function.__module__.removeprefix("blackjax.mcmc.")
    if name == "elliptical_slice":
        raise InputError(
            "from_blackjax",
            got="elliptical_slice",
            expected="a kernel that targets a log-density",
            fix="It takes the likelihood alone and would count the prior twice; use slice_sampling.",
        )
    build_names = set(inspect.signature(build_function).parameters)
    build = {key: value for key, value in parameters.items() if key in build_names}
    given = {key: value for key, value in parameters.items() if key not in build_names}
    if name == "slice" and "proposal_generator" not in given and "interval" in build_names:
        given |= _default_proposal(build_function)
    _check_parameters(name, build_function(**build), given)
    is_number = {key: isinstance(value, float | np.ndarray | jax.Array) for key, value in given.items()}
    return BlackJAX(
        numbers={key: value for key, value in given.items() if is_number[key]},
        choices=tuple(sorted((key, value) for key, value in given.items() if not is_number[key])),
        build_choices=tuple(sorted(build.items())),
        init_function=init_function,
        build_function=build_function,
        name=f"blackjax.{name}",
        caches_gradient=_caches_gradient(init_function),
    )


def _caches_gradient(init_function: Callable[..., Any]) -> bool:
    """Whether the states of an algorithm hold the gradient of the log-density; none uses gradients without."""
    try:
        state = jax.eval_shape(lambda position: init_function(position, jnp.sum), jnp.zeros(1))
    except TypeError as error:
        raise InputError(
            "from_blackjax",
            got=f"an algorithm that cannot start from a position alone ({error})",
            expected="one whose init takes a position and a log-density",
            fix="Use blackjax.nuts, hmc, mala, barker, rmh or slice_sampling.",
        ) from error
    return "logdensity_grad" in state._fields


@cache
def _default_proposal(build_function: Callable[..., Any]) -> dict[str, Any]:
    """BlackJAX's top-level slice sampler fills in a direction proposal; the bare kernel does not.

    One proposal for all kernels: it is part of the compiled program, so a new one would compile anew.
    """
    from blackjax.mcmc import slice as blackjax_slice  # noqa: PLC0415 - BlackJAX takes a second to import

    is_multivariate = build_function is blackjax_slice.build_kernel
    return {"proposal_generator": blackjax_slice.direction_proposal()} if is_multivariate else {}


def _check_parameters(name: str, kernel: Callable[..., Any], given: dict[str, Any]) -> None:
    """Name missing and unknown parameters before anything is compiled."""
    signature = inspect.signature(kernel).parameters
    wanted = dict(list(signature.items())[3:])
    unknown = sorted(set(given) - set(wanted))
    missing = sorted(
        key for key, parameter in wanted.items() if parameter.default is inspect.Parameter.empty and key not in given
    )
    if unknown or missing:
        raise InputError(
            f"blackjax {name}",
            got=f"unknown parameters {unknown}, missing {missing}",
            expected=f"the parameters {sorted(wanted)}",
            fix="Pass them by keyword to from_blackjax.",
        )
