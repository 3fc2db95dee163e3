"""Which terms of a PyMC model belong to the rows, and which to the prior.

Rows are found by their number: the length of the first axis of the observed values, or else of the potentials.

- Free variables with the Jacobians of their transforms, and potentials of parameters alone, are prior.
- Observed variables with one entry for each row, and potentials that keep an axis of rows and use data of the rows, are
  likelihood.
- Observed values that are a single number are a prior term; other lengths are asked about, and ``rows`` answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.interop.pymc.graph import minibatches
from coreset_mcmc.interop.pymc.jax_functions import evaluate, to_jax
from coreset_mcmc.interop.pymc.refusals import check_lengths, check_named_rows, check_potential, names_of
from coreset_mcmc.interop.pymc.row_sources import Variable, row_sources


@dataclass(frozen=True)
class Terms:
    """Observed variables and potentials, sorted into those of the rows and the rest."""

    row_terms: list[Variable]
    prior_terms: list[Variable]
    size: int
    """The number of rows."""


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
    size = next(length for length in lengths.values() if length is not None)
    return Terms([known[name] for name in rows], [term for name, term in known.items() if name not in rows], size)


def _found(model: Any) -> Terms:
    observed = {rv: _leading_length(model, rv) for rv in model.observed_RVs}
    potentials = {term: _leading_length(model, term) for term in model.potentials}
    long = {rv: length for rv, length in observed.items() if length is not None and length > 1}
    candidates = set(long.values()) or {length for length in potentials.values() if length is not None}
    check_lengths(_by_name(long), _by_name(potentials), candidates)
    size = next(iter(candidates))
    of_rows = {term: bool(row_sources(model.replace_rvs_by_values([term]), size)) for term in potentials}
    for term, length in potentials.items():
        if of_rows[term]:
            check_potential(term.name, length, size, names_of(long))
    is_of_rows = {rv: rv in long for rv in observed} | of_rows
    return Terms(
        [term for term, belongs in is_of_rows.items() if belongs],
        [term for term, belongs in is_of_rows.items() if not belongs],
        size,
    )


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
