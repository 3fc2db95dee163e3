"""A PyMC model as it stands: its prior, its rows and its names.

The graph is split into what belongs to single rows and everything else. Rows are found by their number: data with an
axis of that length become inputs of the log-likelihood. Whether each row then stands alone is not guessed from the
graph but tested on numbers (``row_checks``).

Which term is which:

- free variables with the Jacobians of their transforms, and potentials of parameters alone, are prior;
- observed variables with one entry for each row, and potentials that keep an axis of rows and use data of the rows, are
  likelihood; trailing axes are summed;
- observed values that are a single number are a prior term; other lengths are asked about, and ``rows`` answers.

The scale of minibatches (``total_size``) is left out: all rows that the model holds are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.interop.pymc.graph import (
    RowSource,
    Variable,
    evaluate,
    inlined,
    minibatches,
    over_rows,
    random_to_jax,
    row_sources,
    to_jax,
    value_held,
    with_all_rows,
)
from coreset_mcmc.interop.pymc.row_checks import check_rows_stand_alone
from coreset_mcmc.interop.pymc.student_t import steady_log_density
from coreset_mcmc.models.model import Model


@double_precision
def from_pymc(model: Any, *, rows: str | Sequence[str] | None = None, name: str | None = None) -> Model:
    """A :class:`~coreset_mcmc.Model` from a PyMC model, with the data that it holds: ``cm.fit(cm.from_pymc(model))``.

    Args:
        model: a ``pymc.Model`` (PyMC 5 or 6). ``pm.Data`` and NumPy arrays with one entry for each row become the rows;
            a later ``pm.set_data`` has no effect.
        rows: names of the observed variables, or of potentials, whose first axis counts rows. Everything else is then
            part of the prior, with its data as they are. By default all observed variables, which must agree on the
            number of rows, and potentials that keep an axis of rows.
        name: how the model is called in messages and files.

    The posterior shows the free variables and the deterministics that do not depend on data of the rows.
    """
    _check_kind(model)
    terms = _Terms.of(model, [rows] if isinstance(rows, str) else rows)
    _check_no_row_latents(model, terms.size)
    graph = _RowGraph.of(model, terms)
    position = {key: np.asarray(value) for key, value in model.initial_point(0).items()}
    order = [value.name for value in model.value_vars]
    log_prior = _prior(model, terms, order)
    log_likelihood = graph.log_likelihood(order)
    shown, constrain = _constrain(model, order, graph)
    subject = f"PyMC model {name or model.name or ', '.join(_names(terms.row_terms))!r}"
    check_rows_stand_alone(log_likelihood, position, graph.data, subject=subject, hint=_size_hint(model, terms.size))
    dims = {key: tuple(value) for key, value in model.named_vars_to_dims.items() if key in shown and None not in value}
    used = {dim for value in dims.values() for dim in value}
    return Model(
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
        identity=_identity(model, graph),
        name=name or model.name or "pymc",
    )


def _check_kind(model: Any) -> None:
    require_library("pymc", "from_pymc")
    import pymc

    require(
        isinstance(model, pymc.Model),
        "from_pymc(model)",
        got=type(model).__name__,
        expected="a pymc.Model",
        fix="Pass the object of `with pm.Model() as model:`; a Bambi model goes through cm.from_bambi.",
    )
    discrete = _names(model.rvs_to_values[rv] for rv in model.free_RVs if not _is_continuous(rv))
    require(
        not discrete,
        "PyMC model",
        got=f"discrete latent variables {discrete}",
        expected="continuous free variables",
        fix="Sum them out: pm.Mixture or pm.NormalMixture for cluster labels, pymc_extras.marginalize for others; or "
        "write log_prior and log_likelihood yourself as a cm.Model, whose positions may be discrete.",
    )
    imputed = [rv.name for rv in model.free_RVs if rv.name.endswith("_unobserved")]
    require(
        not imputed,
        "PyMC model",
        got=f"missing values in the observed data, which PyMC imputes by one latent each ({', '.join(imputed)})",
        expected="observed values without gaps",
        fix="Drop the rows with missing values before building the model; given the parameters they carry no "
        "information on them.",
    )


def _is_continuous(rv: Variable) -> bool:
    return str(rv.dtype).startswith("float")


def _names(variables: Any) -> list[str]:
    return [variable.name for variable in variables]


@dataclass(frozen=True)
class _Terms:
    """Observed variables and potentials, sorted into those of the rows and the rest."""

    row_terms: list[Variable]
    prior_terms: list[Variable]
    size: int

    @classmethod
    def of(cls, model: Any, rows: Sequence[str] | None) -> _Terms:
        known = {term.name: term for term in [*model.observed_RVs, *model.potentials]}
        require(
            bool(known),
            "PyMC model",
            got="neither observed variables nor potentials",
            expected="at least one observed variable",
            fix="Pass observed=... to the likelihood.",
        )
        if rows is not None:
            return cls._named(model, known, rows)
        return cls._found(model)

    @classmethod
    def _named(cls, model: Any, known: Mapping[str, Variable], rows: Sequence[str]) -> _Terms:
        unknown = [row for row in rows if row not in known]
        require(
            bool(rows) and not unknown,
            "rows",
            got=repr(unknown or rows),
            expected=f"names of observed variables or potentials, among {list(known)}",
            fix="Pass those whose first axis counts rows.",
        )
        sizes = {row: _leading_length(model, known[row]) for row in rows}
        lengths = set(sizes.values())
        require(
            len(lengths) == 1 and None not in lengths,
            "rows",
            got=f"lengths {sizes}",
            expected="one common length of the first axis",
            fix="A potential must not be summed over the rows. Name fewer variables; the others become prior terms.",
        )
        rest = [term for key, term in known.items() if key not in rows]
        return cls([known[row] for row in rows], rest, int(next(iter(sizes.values())) or 0))

    @classmethod
    def _found(cls, model: Any) -> _Terms:
        lengths = {rv: _leading_length(model, rv) for rv in model.observed_RVs}
        long = {rv: length for rv, length in lengths.items() if length is not None and length > 1}
        potentials = {term: _leading_length(model, term) for term in model.potentials}
        candidates = set(long.values()) or {length for length in potentials.values() if length is not None}
        require(
            len(candidates) > 0,
            "PyMC model",
            got="no observed variable and no potential with an axis of rows",
            expected="one log-likelihood for each row",
            fix="Give a potential without .sum(), or pass the rows as observed=...",
        )
        require(
            len(candidates) == 1,
            "PyMC model",
            got=f"observed lengths { {rv.name: length for rv, length in long.items()} or potentials }",
            expected="one number of rows",
            fix="Which of them are the rows? Pass their names, e.g. cm.from_pymc(model, rows="
            f"{max(long, key=lambda rv: long[rv]).name if long else 'potential'!r}); the others become prior terms, "
            "evaluated in full at every step.",
        )
        size = int(candidates.pop())
        row_terms = [rv for rv in model.observed_RVs if rv in long]
        prior_terms = [rv for rv in model.observed_RVs if rv not in long]
        for term, length in potentials.items():
            uses_rows = bool(row_sources(model.replace_rvs_by_values([term]), size))
            require(
                not uses_rows or length == size,
                f"potential {term.name!r}",
                got=f"data of the {size} rows, but no axis of rows",
                expected="one value for each row, or no use of the rows",
                fix="If it sums over the rows, leave the sum out: pm.Potential adds up by itself. If it is no part of "
                "the likelihood, name what is: cm.from_pymc(model, rows="
                f"{_names(row_terms) or ['...']}).",
            )
            (row_terms if uses_rows else prior_terms).append(term)
        return cls(row_terms, prior_terms, size)


def _leading_length(model: Any, term: Variable) -> int | None:
    """The length of the first axis of observed values (all of them, if they are minibatches) or of a potential."""
    if term in model.potentials:
        values = model.replace_rvs_by_values([term])
        function = to_jax(model.value_vars, values)
        position = [jax.ShapeDtypeStruct(np.shape(value), jnp.float64) for value in _initial(model)]
        shape = jax.eval_shape(function, *position)[0].shape
    else:
        value = model.rvs_to_values[term]
        shape = evaluate(minibatches([value]).get(value, value)).shape
    return shape[0] if shape else None


def _initial(model: Any) -> list[np.ndarray]:
    point = model.initial_point(0)
    return [point[value.name] for value in model.value_vars]


def _check_no_row_latents(model: Any, size: int) -> None:
    shapes = {value.name: np.shape(start) for value, start in zip(model.value_vars, _initial(model), strict=True)}
    latents = [model.values_to_rvs[value].name for value in model.value_vars if size in shapes[value.name]]
    require(
        not latents,
        "PyMC model",
        got=f"free variables {latents} with one value for each of the {size} rows",
        expected="parameters whose number does not grow with the rows",
        fix="Sum or integrate such latents out (a Student t instead of a scale for each row, a negative binomial "
        "instead of a Poisson with a rate for each row, pm.Mixture instead of labels). A state that runs through time "
        "has no coreset of its time steps; make one row of each independent series.",
    )


def _size_hint(model: Any, size: int) -> str:
    near = [rv.name for rv, start in zip(model.free_RVs, _initial(model), strict=True) if size - 1 in np.shape(start)]
    if near:
        return (
            f"The free variables {near} have almost as many values as there are rows ({size}): latents that belong to "
            "rows, or steps in time. Sum or integrate them out, or make one row of each independent series."
        )
    return (
        f"A size, or an array that the model does not see as data of the rows, fixes their number ({size}). Pass "
        "arrays to the model as they are, rows along the first axis; take sizes from them, as in x.shape[0]; give "
        "data to a CustomDist as its arguments. Several rows that depend on each other, as steps in time do, "
        "must be one row."
    )


@dataclass(frozen=True)
class _RowGraph:
    """What depends on the rows, as PyTensor graphs and as JAX functions."""

    model: Any
    terms: _Terms
    log_densities: list[Variable]
    """Of the rows, one graph for each term."""
    sources: list[RowSource]

    @classmethod
    def of(cls, model: Any, terms: _Terms) -> _RowGraph:
        observed = [rv for rv in terms.row_terms if rv in model.observed_RVs]
        values = {rv.name: model.rvs_to_values[rv] for rv in observed}
        batches = minibatches(list(values.values()))
        wishes = {batches.get(value, value): name for name, value in values.items()}
        logps = _written_out(_row_log_densities(model, terms.row_terms))
        sources = row_sources(logps, terms.size, {item: name for item, name in wishes.items() if not item.name})
        draws = _written_out(_new_responses(model, observed))
        sources += row_sources(draws, terms.size, known=sources)
        return cls(model, terms, logps, sources)

    @property
    def data(self) -> dict[str, np.ndarray]:
        rows: dict[str, np.ndarray] = {}
        for source in self.sources:
            rows.setdefault(source.name, source.values)
        return rows

    def inputs_and(self, outputs: Sequence[Variable]) -> tuple[dict[str, Variable], list[Variable]]:
        """A graph of this model as one of its rows, with the inputs that it takes from a batch."""
        graph = _written_out(outputs)
        lengths = [item for item in self.model.dim_lengths.values() if self._is_row_length(item)]
        here = row_sources(graph, self.terms.size, known=self.sources)
        return over_rows(graph, [*self.sources, *here], self.terms.size, lengths)

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
            value = self.model.rvs_to_values.get(rv)
            while value is not None and value not in by_variable and value.owner is not None:
                value = value.owner.inputs[0]  # a cast of pm.Data
            if value in by_variable:
                found[rv.name] = batch[by_variable[value]]
        return found

    def predictive(self, order: Sequence[str]) -> Callable[[Key, Position, Batch], dict[str, jax.Array]]:
        """New responses; built when first asked for, because not every distribution can be drawn by JAX."""
        responses = [rv for rv in self.terms.row_terms if rv in self.model.observed_RVs]
        cache: list[Any] = []

        def build() -> Any:
            inputs, outputs = self.inputs_and(_new_responses(self.model, responses))
            return tuple(inputs), random_to_jax([*self.model.value_vars, *inputs.values()], outputs)

        def predictive(key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
            if not cache:
                cache.append(build())
            names, function = cache[0]
            try:
                values = function(key, *(position[name] for name in order), *(batch[name] for name in names))
            except NotImplementedError as error:
                raise InputError(
                    f"draws of {_names(responses)}",
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
            return dict(zip(_names(responses), values, strict=True))

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

    return [one(term) for term in terms]


def _without_scale(term: Variable) -> Variable:
    from pymc.variational.minibatch_rv import MinibatchRandomVariable

    is_scaled = term.owner is not None and isinstance(term.owner.op, MinibatchRandomVariable)
    return term.owner.inputs[0] if is_scaled else term


def _new_responses(model: Any, observed: Sequence[Variable]) -> list[Variable]:
    """The observed variables as draws given the parameters."""

    def one(rv: Variable) -> Variable:
        unscaled = _without_scale(rv)
        return unscaled if unscaled is not rv else rv.owner.clone().outputs[rv.owner.outputs.index(rv)]

    return model.replace_rvs_by_values([one(rv) for rv in observed]) if observed else []


def _prior_graph(model: Any, terms: _Terms) -> Variable:
    return model.logp(vars=[*model.free_RVs, *terms.prior_terms])


def _prior(model: Any, terms: _Terms, order: Sequence[str]) -> Callable[[Position], jax.Array]:
    function = to_jax(model.value_vars, [_prior_graph(model, terms)])

    def log_prior(position: Position) -> jax.Array:
        return function(*(position[name] for name in order))[0]

    return log_prior


def _constrain(
    model: Any, order: Sequence[str], graph: _RowGraph
) -> tuple[list[str], Callable[[Position], dict[str, jax.Array]]]:
    """Parameters on their own scale and deterministics, as far as they do not depend on the rows."""
    known = dict(zip(_names(model.unobserved_RVs), model.replace_rvs_by_values(model.unobserved_RVs), strict=True))
    derived = set(_names(model.deterministics))
    names = [name for name in known if name not in derived or not row_sources([known[name]], graph.terms.size)]
    function = to_jax(model.value_vars, [known[name] for name in names])

    def constrain(position: Position) -> dict[str, jax.Array]:
        return dict(zip(names, map(jnp.asarray, function(*(position[name] for name in order))), strict=True))

    return names, constrain


def _unconstrain(model: Any) -> Callable[[Mapping[str, Any], Position], Position]:
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
            model=model, overrides={key: np.asarray(value) for key, value in values.items() if key in free}
        )(0)
        given = {key: np.asarray(value) for key, value in values.items() if key not in free}
        return {key: given.get(key, np.asarray(point[key])) for key in position}

    return unconstrain


def _identity(model: Any, graph: _RowGraph) -> Any:
    """What the model computes, in words and numbers, for the fingerprint of a checkpoint."""
    import pytensor
    from pytensor.graph.traversal import graph_inputs

    terms = [_prior_graph(model, graph.terms), *graph.log_densities]
    held = [value for item in graph_inputs(terms) if (value := value_held(item)) is not None]
    text = re.sub(r"0x[0-9A-Fa-f]+", "", pytensor.dprint(terms, file="str"))  # where random states lie in memory
    return {"graph": text, "constants": [array for array in held if array.size > 1]}
