"""NumPyro models that pick rows by a mask, as in ``mu[~censored]``.

Compiled code must know shapes, and how many rows are censored follows from values. But a mask has two values, and rows
are independent: the model runs on a batch as if all of its rows were censored, and as if none was, both of which have
known shapes, and each row takes the likelihood that belongs to its own value. That this is the model itself is tried
out on rows of both kinds, with the mask as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.interop.numpyro.bound import BoundModel
from coreset_mcmc.interop.numpyro.running import Source, site_log_prob
from coreset_mcmc.models.independence import agree, random_positions
from coreset_mcmc.models.rows import num_rows_of, unlike_rows

MOST_MASKS = 3
"""Columns that may be masks together; the model runs once for each combination of their values."""

DEPENDENT = "a log-likelihood of a row that changes with"
"""How a refusal begins that says more than that values are used."""

Masks = tuple[tuple[str, Any], ...]


def picks_rows(error: InputError) -> bool:
    """Whether a model was refused because it indexes by a mask, whose number of rows is not known before."""
    return isinstance(error.__cause__, jax.errors.NonConcreteBooleanIndexError)


def possible_masks(rows: Mapping[str, Any]) -> Iterator[list[Masks]]:
    """Sets of columns with two values, the fewest first: every combination of their values."""
    values = {
        name: np.unique(column)
        for name, column in rows.items()
        if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "biu"
    }
    names = [name for name, found in values.items() if len(found) == 2]
    for count in range(1, MOST_MASKS + 1):
        for chosen in combinations(names, count):
            yield [tuple(zip(chosen, each, strict=True)) for each in product(*(values[name] for name in chosen))]


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """The same model with its masks at each of their values."""

    parts: tuple[tuple[Masks, BoundModel], ...]

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        return self.main.structure.dims

    @property
    def main(self) -> BoundModel:
        """The part with the most responses: new ones are drawn as if all rows were its."""
        return max((part for _, part in self.parts), key=lambda part: len(part.structure.responses))

    def log_prior(self, position: Position) -> jax.Array:
        return self.main.log_prior(position)

    def log_likelihood(self, position: Position, batch: Batch) -> jax.Array:
        total = jnp.zeros(num_rows_of(batch))
        for masks, part in self.parts:
            is_here = jnp.ones(num_rows_of(batch), bool)
            for name, value in masks:
                is_here &= batch[name] == value
            if part.structure.row_sites:
                total = jnp.where(is_here, part.log_likelihood(position, batch), total)
        return total

    def initial_position(self, key: Key) -> Position:
        return self.main.initial_position(key)

    def constrain(self, position: Position) -> dict[str, jax.Array]:
        return self.main.constrain(position)

    def unconstrain(self, values: Mapping[str, Any], position: Position) -> Position:
        return self.main.unconstrain(values, position)

    def predictive(self, key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
        return self.main.predictive(key, position, batch)

    def observed(self, batch: Batch) -> dict[str, Any]:
        """None that every row has."""
        del batch
        return {}


def check_is_the_model(masked: MaskedModel, whole: BoundModel, rows: Mapping[str, Any]) -> None:
    """The sum of prior and rows must be the log-density of the model with its masks as they are."""
    few = unlike_rows(dict(rows))
    start = masked.initial_position(jax.random.key(0))
    for place in range(2):
        position = jax.tree.map(lambda leaf, place=place: leaf[place], random_positions(start, 2))
        ours = masked.log_prior(position) + jnp.sum(masked.log_likelihood(position, few))
        require(
            agree(ours, _log_density(whole, position, few)),
            "NumPyro model",
            got=f"a column ({', '.join(name for name, _ in masked.parts[0][0])}) that picks rows, and the model is "
            "another one if it runs on the rows of one kind alone",
            expected="a mask that decides about single rows",
            fix="Give every row a value: handlers.mask(mask=~censored) around the observed site, and for the others "
            "numpyro.factor('censored', jnp.where(censored, log_survival, 0.0)).",
        )


def _log_density(model: BoundModel, position: Position, rows: Mapping[str, Any]) -> jax.Array:
    """Of the model on rows whose values are known."""
    terms = [jnp.sum(site_log_prob(site)) for site in model.trace(position, rows).values() if site["type"] == "sample"]
    return sum(terms, start=jnp.zeros(()))


def masked_model(
    look: Callable[[Source], BoundModel], source: Source, rows: Mapping[str, Any], refused: InputError
) -> MaskedModel:
    """The model by the values of its masks, as ``look`` finds each of them; or else what refused it as it was."""
    for choices in possible_masks(rows):
        try:
            found = MaskedModel(tuple((masks, look(replace(source, masks=masks))) for masks in choices))
        except InputError as error:
            refused = error if DEPENDENT in error.got else refused
            continue
        try:
            check_is_the_model(found, replace(found.main, source=source), rows)
        except (TypeError, IndexError) as error:  # with the mask as it is, shapes are others
            raise refused from error
        return found
    raise refused
