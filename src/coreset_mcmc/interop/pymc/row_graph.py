"""What a PyMC model does with its rows: log-densities, new responses, and the data that both are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.interop.pymc.graph import inlined, minibatches, over_rows, with_all_rows
from coreset_mcmc.interop.pymc.jax_functions import random_to_jax, to_jax
from coreset_mcmc.interop.pymc.refusals import (
    check_densities_are_known,
    check_rows_are_no_event,
    names_of,
    refuse_density,
)
from coreset_mcmc.interop.pymc.row_sources import RowSource, Variable, row_sources
from coreset_mcmc.interop.pymc.student_t import steady_log_density
from coreset_mcmc.interop.pymc.subsets import Subset, counting_own, on_all_rows
from coreset_mcmc.interop.pymc.terms import Terms


@dataclass(frozen=True)
class RowGraph:
    """What depends on the rows, as PyTensor graphs and as JAX functions."""

    model: Any
    terms: Terms
    log_densities: list[Variable]
    """Of the rows, one graph for each term."""
    sources: list[RowSource]
    spread: Mapping[Variable, Variable]
    """Data of some of the rows, and what has taken their place among the data of all."""

    @classmethod
    def of(cls, model: Any, terms: Terms) -> RowGraph:
        observed = [rv for rv in terms.row_terms if rv in model.observed_RVs]
        values = {rv.name: model.rvs_to_values[rv] for rv in observed}
        for rv in observed:
            check_rows_are_no_event(rv.name, _without_scale(rv).owner.op, values[rv.name].type.ndim)
        batches = minibatches(list(values.values()))
        wishes = {batches.get(value, value): name for name, value in values.items()}
        logps = _written_out(_row_log_densities(model, terms.row_terms))
        logps, spread = _on_all_rows(model, logps, terms)
        wishes |= {spread[item]: name for item, name in wishes.items() if item in spread}
        sources = row_sources(logps, terms.size, {item: name for item, name in wishes.items() if not item.name})
        draws = _written_out(_new_responses(model, terms, observed))
        sources += row_sources(draws, terms.size, known=sources)
        return cls(model, terms, logps, sources, spread)

    @property
    def data(self) -> dict[str, np.ndarray]:
        rows: dict[str, np.ndarray] = {}
        used = self.terms.rows_in_use
        for source in self.sources:
            rows.setdefault(source.name, source.values if used is None else source.values[used])
        return rows

    def inputs_and(self, outputs: Sequence[Variable]) -> tuple[dict[str, Variable], list[Variable]]:
        """A graph of this model as one of its rows, with the inputs that it takes from a batch.

        Those are the data on which it depends, or any of them that tells the number of rows.
        """
        graph = _written_out(outputs)
        lengths = [item for item in self.model.dim_lengths.values() if self._is_row_length(item)]
        here = row_sources(graph, self.terms.size, known=self.sources)
        names = {source.name for source in here} or {source.name for source in self.sources[:1]}
        sources = [source for source in (*self.sources, *here) if source.name in names]
        return over_rows(graph, sources, self.terms.size, lengths)

    def _is_row_length(self, length: Variable) -> bool:
        return hasattr(length, "get_value") and int(length.get_value()) == self.terms.size

    def log_likelihood(self, order: Sequence[str]) -> Callable[[Position, Batch], jax.Array]:
        inputs, logps = self.inputs_and(self.log_densities)
        function = to_jax([*self.model.value_vars, *inputs.values()], logps)
        names = tuple(inputs)

        def log_likelihood(position: Position, batch: Batch) -> jax.Array:
            values = function(*(position[name] for name in order), *(batch[name] for name in names))
            return reduce(jnp.add, [value.reshape(*value.shape[:1], -1).sum(axis=-1) for value in values])

        return log_likelihood

    def observed(self, batch: Batch) -> dict[str, Any]:
        """Responses among the data, under the names of the observed variables."""
        by_variable = {source.variable: source.name for source in self.sources}
        found: dict[str, Any] = {}
        for rv in self.terms.row_terms:
            if rv in self.terms.subsets and not self._has_all(self.terms.subsets[rv]):
                continue
            value = self.model.rvs_to_values.get(rv)
            value = self.spread.get(value, value)
            while value is not None and value not in by_variable and value.owner is not None:
                value = value.owner.inputs[0]  # a cast of pm.Data
            if value in by_variable:
                found[rv.name] = batch[by_variable[value]]
        return found

    @property
    def responses(self) -> list[Variable]:
        """Observed variables of the rows, which can be drawn anew."""
        return [rv for rv in self.terms.row_terms if rv in self.model.observed_RVs]

    def needed_for_responses(self) -> set[str]:
        """Data that new responses are made of; any of them, to tell the number of rows, if they depend on none."""
        return set(self.inputs_and(_new_responses(self.model, self.terms, self.responses))[0])

    def _has_all(self, subset: Subset) -> bool:
        """Whether a term is about every row that is in use."""
        used = self.terms.rows_in_use
        return used is not None and np.array_equal(used, subset.places)

    def predictive(self, order: Sequence[str]) -> Callable[[Key, Position, Batch], dict[str, jax.Array]]:
        """New responses; built when first asked for, because not every distribution can be drawn by JAX."""
        responses = self.responses
        cache: list[Any] = []

        def build() -> Any:
            inputs, outputs = self.inputs_and(_new_responses(self.model, self.terms, responses))
            return tuple(inputs), random_to_jax([*self.model.value_vars, *inputs.values()], outputs)

        def predictive(key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
            if not cache:
                cache.append(build())
            names, function = cache[0]
            try:
                values = function(key, *(position[name] for name in order), *(batch[name] for name in names))
            except NotImplementedError as error:
                raise InputError(
                    f"draws of {names_of(responses)}",
                    got=str(error).strip().splitlines()[0],
                    expected="distributions that PyTensor can draw with JAX",
                    fix="Some need numpyro to be installed; for others use pm.sample_posterior_predictive.",
                ) from error
            num_rows = len(jax.tree.leaves(batch)[0])
            for rv, value in zip(responses, values, strict=True):
                require(
                    value.shape[:1] == (num_rows,),
                    f"draws of {rv.name!r}",
                    got=f"shape {value.shape} for {num_rows} rows",
                    expected="one draw for each row",
                    fix="Its size is written into the model; draw with pm.sample_posterior_predictive instead.",
                )
            return dict(zip(names_of(responses), values, strict=True))

        return predictive


def _written_out(outputs: Sequence[Variable]) -> list[Variable]:
    return inlined(with_all_rows(outputs))


def _row_log_densities(model: Any, terms: Sequence[Variable]) -> list[Variable]:
    """The elementwise log-density of each term, without the scale of minibatches."""
    import pymc

    def one(term: Variable) -> Variable:
        unscaled = _without_scale(term)
        steady = steady_log_density(unscaled, model.rvs_to_values.get(term))
        if steady is not None:
            return model.replace_rvs_by_values([steady])[0]
        if unscaled is term:
            return model.logp(vars=[term], sum=False)[0]
        return model.replace_rvs_by_values([pymc.logp(unscaled, model.rvs_to_values[term])])[0]

    found = []
    for term in terms:
        try:
            found.append(one(term))
        except (NotImplementedError, ValueError, TypeError, AssertionError) as error:  # whatever PyMC raises
            refuse_density(term.name, error)
    check_densities_are_known(found, names_of(terms))
    return found


def _without_scale(term: Variable) -> Variable:
    from pymc.variational.minibatch_rv import MinibatchRandomVariable

    is_scaled = term.owner is not None and isinstance(term.owner.op, MinibatchRandomVariable)
    return term.owner.inputs[0] if is_scaled else term


def _new_responses(model: Any, terms: Terms, observed: Sequence[Variable]) -> list[Variable]:
    """The observed variables as draws given the parameters, for all rows."""

    def one(rv: Variable) -> Variable:
        unscaled = _without_scale(rv)
        return unscaled if unscaled is not rv else rv.owner.clone().outputs[rv.owner.outputs.index(rv)]

    draws = model.replace_rvs_by_values([one(rv) for rv in observed]) if observed else []
    return [
        on_all_rows(draw, terms.subsets[rv], list(model.dim_lengths.values()))[0] if rv in terms.subsets else draw
        for rv, draw in zip(observed, _written_out(draws) if terms.subsets else draws, strict=True)
    ]


def _on_all_rows(
    model: Any, log_densities: Sequence[Variable], terms: Terms
) -> tuple[list[Variable], dict[Variable, Variable]]:
    """Log-densities of all rows, zero for those that a term is not about, and what its own data have become."""
    found: list[Variable] = []
    spread: dict[Variable, Variable] = {}
    for term, log_density in zip(terms.row_terms, log_densities, strict=True):
        subset = terms.subsets.get(term)
        if subset is None:
            found.append(log_density)
            continue
        whole, replaced = on_all_rows(log_density, subset, list(model.dim_lengths.values()))
        found.append(counting_own(whole, subset, terms.rows_in_use))
        spread |= replaced
    return found, spread
