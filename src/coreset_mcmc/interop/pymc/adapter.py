"""A PyMC model as it stands: its prior, its rows and its names.

The graph is split into what belongs to single rows and everything else (``terms``). Data with an axis as long as there
are rows become inputs of the log-likelihood (``row_sources``, ``graph``); trailing axes are summed. Whether each row
then stands alone is not guessed from the graph but tried out on numbers.

The scale of minibatches (``total_size``) is left out: all rows that the model holds are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Position
from coreset_mcmc.interop.infinite import with_finite_slopes
from coreset_mcmc.interop.pymc.imputed import WithoutImputed, without_imputed
from coreset_mcmc.interop.pymc.jax_functions import to_jax
from coreset_mcmc.interop.pymc.refusals import (
    advice_on_sizes,
    check_is_continuous,
    check_kind,
    check_no_row_latents,
    names_of,
)
from coreset_mcmc.interop.pymc.row_graph import RowGraph
from coreset_mcmc.interop.pymc.row_sources import Variable, row_sources, value_held
from coreset_mcmc.interop.pymc.terms import Terms, shapes_of_free_variables, terms_of
from coreset_mcmc.models.independence import check_rows_are_independent, compiled, start_and_another
from coreset_mcmc.models.model import Model


@double_precision
def from_pymc(model: Any, *, rows: str | Sequence[str] | None = None, name: str | None = None) -> Model:
    """A :class:`~coreset_mcmc.Model` from a PyMC model, with the data that it holds: ``cm.fit(cm.from_pymc(model))``.

    Args:
        model: a ``pymc.Model`` (PyMC 5 or 6). ``pm.Data`` and NumPy arrays with one entry for each row become the rows;
            a later ``pm.set_data`` has no effect.
        rows: names of the observed variables, or of potentials, whose first axis counts rows. Everything else is then
            part of the prior, with its data as they are. By default all observed variables, which must agree on the
            number of rows, and potentials that keep an axis of rows. Terms of different lengths that do not index
            common rows are rows of their own, one after the other.
        name: how the model is called in messages and files.

    Rows whose responses are missing are left out. A term may be about some of the rows, by an index such as
    ``mu[~censored]``. The posterior shows the free variables and the deterministics that do not depend on data of the
    rows.
    """
    return converted(model, rows, name)[0]


def converted(model: Any, rows: str | Sequence[str] | None, name: str | None) -> tuple[Model, RowGraph]:
    """The model, and what it does with its rows."""
    check_kind(model)
    model = without_imputed(model)
    check_is_continuous(model)
    terms = terms_of(model, [rows] if isinstance(rows, str) else rows)
    shapes = shapes_of_free_variables(model)
    for length in sorted(terms.lengths):
        check_no_row_latents(shapes, length)
    graph = RowGraph.of(model, terms)
    position = {key: np.asarray(value) for key, value in model.initial_point(0).items()}
    order = [value.name for value in model.value_vars]
    log_prior = _prior(model, terms, order)
    log_likelihood = with_finite_slopes(graph.log_likelihood(order), position, graph.data)
    shown, constrain = _constrain(model, order, graph)
    subject = f"PyMC model {name or model.name or ', '.join(names_of(terms.row_terms))!r}"
    check_rows_are_independent(
        compiled(log_likelihood),
        start_and_another(position),
        graph.data,
        subject=subject,
        hint=advice_on_sizes(shapes, terms.size),
    )
    dims = {key: tuple(value) for key, value in model.named_vars_to_dims.items() if key in shown and None not in value}
    used = {dim for value in dims.values() for dim in value}
    result = Model(
        log_prior,
        log_likelihood,
        position,
        dims=dims,
        coords={key: np.asarray(value) for key, value in model.coords.items() if key in used and value is not None},
        constrain=constrain,
        unconstrain=_unconstrain(model),
        predictive=graph.predictive(order) if any(term in model.observed_RVs for term in terms.row_terms) else None,
        observed=graph.observed,
        data=graph.data,
        infinite=True,
        fixed_data=_without_names(graph),
        identity=_identity(model, graph),
        name=name or model.name or "pymc",
    )
    return result, graph


def _prior_graph(model: Any, terms: Terms) -> Variable:
    return model.logp(vars=[*model.free_RVs, *terms.prior_terms])


def _prior(model: Any, terms: Terms, order: Sequence[str]) -> Callable[[Position], jax.Array]:
    function = to_jax(model.value_vars, [_prior_graph(model, terms)])

    def log_prior(position: Position) -> jax.Array:
        return function(*(position[name] for name in order))[0]

    return log_prior


def _constrain(
    model: Any, order: Sequence[str], graph: RowGraph
) -> tuple[list[str], Callable[[Position], dict[str, jax.Array]]]:
    """Parameters on their own scale and deterministics, as far as they do not depend on the rows."""
    known = dict(zip(names_of(model.unobserved_RVs), model.replace_rvs_by_values(model.unobserved_RVs), strict=True))
    derived = set(names_of(model.deterministics))
    of_rows = {name for name in derived if any(row_sources([known[name]], length) for length in graph.terms.lengths)}
    names = [name for name in known if name not in of_rows]
    function = to_jax(model.value_vars, [known[name] for name in names])

    def constrain(position: Position) -> dict[str, jax.Array]:
        return dict(zip(names, map(jnp.asarray, function(*(position[name] for name in order))), strict=True))

    return names, constrain


def _unconstrain(model: Any) -> Callable[[Mapping[str, Any], Position], Position]:
    whole = model.whole if isinstance(model, WithoutImputed) else model

    def unconstrain(values: Mapping[str, Any], position: Position) -> Position:
        from pymc.initial_point import make_initial_point_fn

        free = {rv.name for rv in model.free_RVs}
        unknown = [key for key in values if key not in free and key not in position]
        require(
            not unknown,
            "initvals",
            got=f"{unknown}",
            expected=f"names among {sorted(free)}",
            fix="Give values of free variables on their own scale.",
        )
        point = make_initial_point_fn(
            model=whole, overrides={key: np.asarray(value) for key, value in values.items() if key in free}
        )(0)
        given = {key: np.asarray(value) for key, value in values.items() if key not in free}
        return {key: given.get(key, np.asarray(point[key])) for key in position}

    return unconstrain


def _without_names(graph: RowGraph) -> str:
    """Why other rows cannot take the place of those that the model holds."""
    unnamed = sorted({source.name for source in graph.sources if not source.has_own_name})
    return f"{', '.join(unnamed)} are arrays without a name in the PyMC model: wrap them in pm.Data" if unnamed else ""


def _identity(model: Any, graph: RowGraph) -> Any:
    """What the model computes, in words and numbers, for the fingerprint of a checkpoint."""
    import pytensor
    from pytensor.graph.traversal import graph_inputs

    terms = [_prior_graph(model, graph.terms), *graph.log_densities]
    held = [value for item in graph_inputs(terms) if (value := value_held(item)) is not None]
    text = re.sub(r"0x[0-9A-Fa-f]+", "", pytensor.dprint(terms, file="str"))  # where random states lie in memory
    return {"graph": text, "constants": [array for array in held if array.size > 1]}
