"""Many draws from one coreset posterior: what constructions collect before each change of weights or rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.kernels.base import Kernel, step_chains
from coreset_mcmc.posterior.target import CoresetTarget


def require_equal_shares(num_draws: int, num_chains: int) -> None:
    """Draws are divided among chains without a rest."""
    require(
        num_draws % num_chains == 0,
        "num_draws",
        got=num_draws,
        expected=f"a multiple of the {num_chains} chains",
        fix="Each chain makes an equal share of the draws.",
    )


class Draws(NamedTuple):
    """Draws of all chains in one line, and how they came about."""

    chains: Any
    """States after the last step."""
    positions: Position
    """Leaves (num_kept * K, ...): the draws kept of all K chains."""
    acceptance_rate: Any
    """Mean over chains and steps, over all of them unless the first ones tuned the kernel."""
    diverging: Any
    """How many steps could not be completed as intended."""
    num_evaluations: Any
    """Evaluations of the log-density, over all steps and chains."""


class _Tally(NamedTuple):
    acceptance: jax.Array
    diverging: jax.Array
    num_evaluations: jax.Array


def collect_draws(
    kernel: Kernel, key: Key, chains: Any, target: CoresetTarget, num_steps: int, num_discarded: int = 0
) -> Draws:
    """``num_steps`` of each chain, without the first ``num_discarded`` positions of each."""

    def advance(carry: tuple[Any, _Tally], step_key: Key) -> tuple[tuple[Any, _Tally], Position]:
        chains, tally = carry
        chains, info = step_chains(kernel, step_key, chains, target)
        tally = _Tally(
            tally.acceptance + jnp.mean(info.acceptance_rate),
            tally.diverging + jnp.sum(info.diverging, dtype=jnp.int32),
            tally.num_evaluations + jnp.sum(info.num_evaluations, dtype=jnp.int64),
        )
        return (chains, tally), chains.position

    nothing = _Tally(jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int64))
    (chains, tally), path = jax.lax.scan(advance, (chains, nothing), jax.random.split(key, num_steps))
    return Draws(
        chains=chains,
        positions=jax.tree.map(lambda leaf: leaf[num_discarded:].reshape(-1, *leaf.shape[2:]), path),
        acceptance_rate=tally.acceptance / num_steps,
        diverging=tally.diverging,
        num_evaluations=tally.num_evaluations,
    )
