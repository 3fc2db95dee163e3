"""Effects of groups: terms such as (1|g) and (x|g).

A term (x|g) adds x_n e[g_n] to the predictor, with e_j ~ N(0, sigma^2) for the groups j and a prior for sigma: "x|g"
and "x|g_sigma" of the posterior, as in Bambi. A term of several columns, (h|g) with levels h, has an effect of each
column for each group, and a sigma for each column. Rows hold the number of the group and the columns x, scaled but not
centred; there is no matrix with a column for each group.

Chains move on the effects themselves and on log sigma (the centred parametrisation): the predictor is then affine in
the position, rows read effects and not their spread, and groups are informed by many rows where a coreset is of use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Position
from coreset_mcmc.models.special import inverse_scale
from coreset_mcmc.tables.columns import CleanRows
from coreset_mcmc.tables.levels import MOST_LEVELS
from coreset_mcmc.tables.priors import Prior
from coreset_mcmc.tables.terms import Coded, Component

MULTIPLIERS = "multipliers"
"""The key of the columns (N, m) that slopes of groups belong to."""


@dataclass(frozen=True, eq=False)
class GroupFactor:
    """Columns whose levels together name the groups."""

    name: str
    components: tuple[Coded, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """All combinations of levels, the last column fastest."""
        names = [""]
        for component in self.components:
            names = [f"{name}:{level}" if name else str(level) for name in names for level in component.levels]
        return tuple(names)

    def codes(self, rows: CleanRows) -> np.ndarray:
        """The group of each row (n,)."""
        codes = np.zeros(rows.count, np.int64)
        for component in self.components:
            codes = codes * len(component.levels) + component.codes(rows)
        return codes


@dataclass(frozen=True, eq=False)
class GroupTerm:
    """A term of a formula."""

    name: str
    factor: int
    """Which of the factors of the formula."""
    columns: tuple[int | None, ...]
    """Which of the multipliers of the formula belong to it; (None,) for an effect of the group as such."""
    expression: str
    levels: tuple[str, ...] | None
    """Names of its columns, if it has several."""


@dataclass(frozen=True, eq=False)
class GroupTerms:
    """Those of a formula."""

    factors: tuple[GroupFactor, ...] = ()
    multipliers: tuple[Component, ...] = ()
    labels: tuple[str, ...] = ()
    """Of the columns of the multipliers."""
    terms: tuple[GroupTerm, ...] = ()

    def values(self, rows: CleanRows) -> np.ndarray:
        """The multipliers (n, m) in the user's units."""
        parts = [np.asarray(component.values(rows), float) for component in self.multipliers]
        return np.concatenate(parts, axis=1) if parts else np.empty((rows.count, 0))


def check_groups(factors: Sequence[GroupFactor]) -> None:
    """Refuse what has no groups to speak of, or too many."""
    for factor in factors:
        count = math.prod(len(component.levels) for component in factor.components)
        require(
            count >= 2,
            f"groups {factor.name!r}",
            got="one group",
            expected="at least two",
            fix="Leave the term out; the intercept takes its place.",
        )
        require(
            count <= MOST_LEVELS,
            f"groups {factor.name!r}",
            got=f"{count} combinations of levels",
            expected=f"at most {MOST_LEVELS}",
            fix="Make a column of the combinations that occur, or lump rare levels (lump_rare=50).",
        )


@dataclass(frozen=True)
class Group:
    """What a compiled program knows about a term."""

    name: str
    code: int
    """Which column of codes."""
    num_groups: int
    columns: tuple[int | None, ...]
    priors: tuple[Prior, ...]
    """Of the spread of each column, in standardised units."""

    @property
    def key(self) -> str:
        """Of the logarithms of the spreads in a position; that of the effects is the name."""
        return f"log_{self.name}_sigma"

    def log_prior(self, position: Position) -> jax.Array:
        """Of effects (J, e, ...) and log spreads (e, ...)."""
        effects, log_spread = position[self.name], position[self.key]
        relative = jnp.clip(effects * inverse_scale(log_spread), -1e120, 1e120)
        constant = 0.5 * effects.size * math.log(2.0 * math.pi)
        total: jax.Array = -0.5 * jnp.sum(relative**2) - self.num_groups * jnp.sum(log_spread) - constant
        for place, prior in enumerate(self.priors):
            total = total + jnp.sum(prior.log_density(log_spread[place]))
        return total

    def effects(self, position: Position) -> list[jax.Array]:
        """Of every column (J,)."""
        return [position[self.name][:, place] for place in range(len(self.columns))]

    def start(self, trailing: tuple[int, ...]) -> dict[str, Any]:
        """No effects, and a spread of half a standard deviation, or of half a unit of the predictor."""
        shape = (self.num_groups, len(self.columns), *trailing)
        return {self.name: np.zeros(shape), self.key: np.full(shape[1:], math.log(0.5))}
