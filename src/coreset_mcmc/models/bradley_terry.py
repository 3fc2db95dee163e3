"""Bradley-Terry: the abilities of players from who beat whom (Bradley and Terry 1952).

P(i beats j) = logistic(ability_i - ability_j), abilities N(0, 1) a priori. The likelihood sees differences only, so the
common level is identified by the prior alone: the mean of P abilities keeps its prior N(0, 1/P) exactly. The posterior
is log-concave, and skewed for players who have won, or lost, nearly all of a few games.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require_count
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.checks import index_column
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.models.special import softplus


def _log_prior(position: Position) -> jax.Array:
    return -0.5 * jnp.sum(position["ability"] ** 2)


def _of_rows(batch: Batch) -> RowRegressors:
    return RowRegressors(jnp.zeros((batch["winner"].shape[0], 0)), (batch["winner"], batch["loser"]))


def _coefficients(position: Position) -> Coefficients:
    """Winners and losers are two factors whose effects have opposite signs."""
    return Coefficients(jnp.zeros(()), jnp.zeros(0), (position["ability"], -position["ability"]))


def _predictor(position: Position, batch: Batch) -> jax.Array:
    ability = position["ability"]
    result: jax.Array = ability[batch["winner"].astype(jnp.int32)] - ability[batch["loser"].astype(jnp.int32)]
    return result


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    del position, batch
    return -softplus(-predicted)


def _one(batch: Batch) -> jax.Array:
    return jnp.ones(batch["winner"].shape)


def _largest_change(largest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """No difference of abilities changes by more than the spread of the changes, and softplus has slope at most one."""
    return largest * jnp.ptp(proposal["ability"] - position["ability"])


@lru_cache
def bradley_terry(num_players: int) -> Model:
    """P(winner beats loser) = logistic(ability_winner - ability_loser). Data: {"winner": (N,), "loser": (N,)}."""
    require_count("num_players", num_players, at_least=2, fix="Pass the number of players, numbered from 0.")

    def check_data(data: Any) -> None:
        winner, loser = index_column(data, "winner", num_players), index_column(data, "loser", num_players)
        if np.any(winner == loser):
            first = int(np.argmax(winner == loser))
            raise InputError(
                "columns winner and loser",
                got=f"player {winner[first]} against itself in row {first}",
                expected="two different players in every row",
                fix="Drop such rows: they carry no information.",
            )

    return Model.from_linear_predictor(
        _log_prior,
        _predictor,
        _log_likelihood,
        regressors=Regressors(_of_rows, _coefficients),
        initial_position={"ability": np.zeros(num_players)},
        change_bound=ChangeBound(_one, _largest_change),
        check_data=check_data,
        dims={"ability": ("player",)},
        log_concave=True,
        name="bradley_terry",
    )


def bradley_terry_data(
    rng: np.random.Generator, num_rows: int = 10_000, *, num_players: int = 100
) -> dict[str, np.ndarray]:
    """Games between players of whom a few play often and most seldom: player i enters in proportion to 1/(i + 1)^2."""
    popularity = 1.0 / np.arange(1.0, num_players + 1.0) ** 2
    first = rng.choice(num_players, size=num_rows, p=popularity / popularity.sum())
    second = rng.choice(num_players, size=num_rows, p=popularity / popularity.sum())
    while np.any(same := first == second):
        second[same] = rng.choice(num_players, size=int(same.sum()), p=popularity / popularity.sum())
    ability = rng.normal(size=num_players)
    first_wins = rng.random(num_rows) < 1.0 / (1.0 + np.exp(ability[second] - ability[first]))
    return {"winner": np.where(first_wins, first, second), "loser": np.where(first_wins, second, first)}
