"""Which terms of a PyMC model belong to the rows, and which to the prior.

Rows are found by their number: the length of the first axis of the observed values, or else of the potentials.

- Free variables with the Jacobians of their transforms, and potentials of parameters alone, are prior.
- Observed variables with one entry for each row, and potentials that keep an axis of rows and use data of the rows, are
  likelihood.
- Observed values that are a single number are a prior term; other lengths are asked about, and ``rows`` answers.
- A term that indexes the rows, by a mask of those that are not censored say, is about some of them; a potential with
  data of rows of its own comes after the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.interop.pymc.graph import minibatches
from coreset_mcmc.interop.pymc.jax_functions import evaluate, to_jax
from coreset_mcmc.interop.pymc.refusals import (
    check_lengths,
    check_named_rows,
    check_potential,
    check_row_axis,
    names_of,
)
from coreset_mcmc.interop.pymc.row_sources import Variable, row_sources
from coreset_mcmc.interop.pymc.subsets import Subset, indexed_rows, one_after_the_other, rows_in_use

SMALL = 0.01
"""Potentials with data of fewer than this share of the rows are evaluated in full, with the prior."""


@dataclass(frozen=True)
class Terms:
    """Observed variables and potentials, sorted into those of the rows and the rest."""

    row_terms: list[Variable]
    prior_terms: list[Variable]
    size: int
    """The number of rows."""
    subsets: Mapping[Variable, Subset] = field(default_factory=dict)
    """Of the terms that are about some of the rows."""

    @property
    def lengths(self) -> set[int]:
        """Numbers of values that belong to rows: of all of them, and of each term."""
        return {self.size, *(subset.length for subset in self.subsets.values())}

    @property
    def rows_in_use(self) -> np.ndarray | None:
        """Numbers of the rows that some term is about; None if that is all of them."""
        return rows_in_use([self.subsets.get(term) for term in self.row_terms])


def terms_of(model: Any, rows: Sequence[str] | None) -> Terms:
    """The terms whose names are ``rows`` are those of the rows; without names they are found."""
    known = {term.name: term for term in [*model.observed_RVs, *model.potentials]}
    require(
        bool(known),
        "PyMC model",
        got="neither observed variables nor potentials",
        expected="at least one observed variable",
        fix="Pass observed=... to the likelihood.",
    )
    return _found(model) if rows is None else _named(model, known, rows)


def _named(model: Any, known: Mapping[str, Variable], rows: Sequence[str]) -> Terms:
    lengths = {name: _leading_length(model, known[name]) if name in known else None for name in rows}
    check_named_rows(lengths, list(known))
    chosen = {known[name]: length for name, length in lengths.items() if length is not None}
    others = [term for name, term in known.items() if name not in rows]
    return _of_rows(chosen, others)


def _of_rows(chosen: Mapping[Variable, int], others: list[Variable]) -> Terms:
    """Terms of all rows, of some of them by an index, or of different rows."""
    subsets = {term: found for term, length in chosen.items() if (found := indexed_rows(term, length)) is not None}
    sizes = {subsets[term].size if term in subsets else length for term, length in chosen.items()}
    if len(sizes) == 1:
        return Terms(list(chosen), others, sizes.pop(), subsets)
    apart = one_after_the_other(_by_name(chosen))
    subsets = {term: apart[term.name] for term in chosen}
    return Terms(list(chosen), others, next(iter(apart.values())).size, subsets)


def _found(model: Any) -> Terms:
    observed = {rv: _leading_length(model, rv) for rv in model.observed_RVs}
    potentials = {term: _leading_length(model, term) for term in model.potentials}
    long = {rv: length for rv, length in observed.items() if length is not None and length > 1}
    in_full = {term: _full_length(term, length) for term, length in (*long.items(), *potentials.items())}
    known = [in_full[rv] for rv in long] or list(potentials.values())
    candidates = {length for length in known if length is not None}
    check_lengths(_by_name(long), _by_name(potentials), candidates)
    size = next(iter(candidates))
    check_row_axis({rv.name: model.rvs_to_values[rv].type.shape for rv in long}, size)
    shapes = shapes_of_free_variables(model)
    chosen = dict(long)
    for term, length in potentials.items():
        graph = model.replace_rvs_by_values([term])
        uses_rows = bool(row_sources(graph, size))
        if uses_rows:
            check_potential(term.name, in_full[term], size, names_of(long))
        if length is not None and (uses_rows or _has_own_rows(graph, length, size, shapes)):
            chosen[term] = length
    return _of_rows(chosen, [term for term in (*observed, *potentials) if term not in chosen])


def _full_length(term: Variable, length: int | None) -> int | None:
    """The number of rows, some of which a term may take by an index."""
    subset = indexed_rows(term, length)
    return length if subset is None else subset.size


def _has_own_rows(graph: list[Variable], length: int, size: int, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a potential has data of so many rows that are not those of the observed variables."""
    is_of_parameters = any(length in shape for shape in shapes.values())
    return length >= SMALL * size and not is_of_parameters and bool(row_sources(graph, length))


def _by_name(lengths: Mapping[Variable, Any]) -> dict[str, Any]:
    return {variable.name: length for variable, length in lengths.items()}


def _leading_length(model: Any, term: Variable) -> int | None:
    """The length of the first axis of observed values (all of them, if they are minibatches) or of a potential."""
    if term in model.potentials:
        function = to_jax(model.value_vars, model.replace_rvs_by_values([term]))
        position = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes_of_free_variables(model).values()]
        shape = jax.eval_shape(function, *position)[0].shape
    else:
        value = model.rvs_to_values[term]
        shape = evaluate(minibatches([value]).get(value, value)).shape
    return shape[0] if shape else None


def shapes_of_free_variables(model: Any) -> dict[str, tuple[int, ...]]:
    """On the scale on which chains move, in the order of the model."""
    point = model.initial_point(0)
    return {model.values_to_rvs[value].name: np.shape(point[value.name]) for value in model.value_vars}
