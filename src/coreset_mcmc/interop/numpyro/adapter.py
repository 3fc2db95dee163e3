"""NumPyro models as they are: a function with observed rows, its data given by the names of its arguments.

Every site of the unconstrained model has a log-probability. Those of observed sites and factors with a value for each
row are the likelihood; priors, Jacobians of the transforms, and factors and observations that belong to no row are the
prior. The scale N / B of a plate that subsamples rows is undone. What cannot be split into rows is refused with advice.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.interop.numpyro.sites import (
    Source,
    Structure,
    drawn,
    look_at_rows,
    run_model,
    site_log_prob,
    unconstrained,
)
from coreset_mcmc.models.independence import (
    NUM_FEWER,
    agree,
    check_rows_are_independent,
    first_rows,
    num_rows_of,
    some_rows,
)
from coreset_mcmc.models.model import Model

NUM_TEMPLATE_ROWS = 2
"""Rows with which the prior is evaluated; it does not depend on them."""
START_RADII = (1.0, 1.0, 0.5, 0.1, 0.0)
"""Unconstrained starts are drawn from these cubes in turn until the density is finite."""


def from_numpyro(
    model: Callable[..., Any],
    *,
    static: Mapping[str, Any] | None = None,
    plate: str | None = None,
    factors: Mapping[str, str] | None = None,
    data: Any = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Model:
    """A NumPyro model, unchanged, as a model for :func:`coreset_mcmc.fitting.fit`.

    ``cm.fit(cm.from_numpyro(model), {"x": x, "y": y})`` calls ``model(x=..., y=...)`` with some of the rows at a time.
    Handlers may be around it (``handlers.reparam``, ``handlers.condition``).

    Args:
        model: the model function; sizes must follow its arguments, e.g. ``numpyro.plate("data", x.shape[0])``.
        static: arguments that are not rows, such as the number of groups, prior scales or small tables.
        plate: name of the plate of rows; found by itself unless several could be it.
        factors: for factor sites, ``"prior"`` or ``"row"``, to state which one is meant; the model must agree.
        data: the rows, if they are not to be passed to ``fit``.
        dims, coords: names of dimensions and their labels; plates name the dimensions of what is in them anyway.
        name: how the model is called in messages; by default as the function.

    Parameters have NumPyro's names. Results hold their constrained values and all deterministic sites that do not
    depend on rows; those with a value for each row come with :meth:`~coreset_mcmc.Fit.predict`.
    """
    require(
        callable(model),
        "from_numpyro",
        got=type(model).__name__,
        expected="a NumPyro model function",
        fix="Pass the function itself, not the result of calling it.",
    )
    require_library("numpyro", "from_numpyro")
    title = name or str(getattr(_innermost(model), "__name__", "numpyro model"))
    adapter = _Adapter(
        model, dict(static or {}), plate, dict(factors or {}), dict(dims or {}), dict(coords or {}), title
    )
    return Model(
        _needs_data, _needs_data, bind=adapter.bind, data=data, coords=coords, name=title, identity=adapter.identity
    )


def _needs_data(*arguments: Any) -> Any:
    del arguments
    raise InputError(
        "NumPyro model",
        got="a call before it has seen data",
        expected="a model bound to its data",
        fix="Use model.bind(data), or cm.fit(model, data), which does so.",
    )


def _innermost(model: Any) -> Any:
    """The function inside handlers and partial applications."""
    while (inner := getattr(model, "fn", None) or getattr(model, "func", None)) is not None:
        model = inner
    return model


@dataclass(frozen=True, eq=False)
class _Adapter:
    """What the user said about the model; binding it to data makes a :class:`Model`."""

    function: Callable[..., Any]
    static: dict[str, Any]
    plate: str | None
    factors: dict[str, str]
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, Any]
    name: str

    @property
    def identity(self) -> list[Any]:
        """For checkpoints: the code and the handlers around it, without addresses in memory."""
        layers, model = [], self.function
        while (inner := getattr(model, "fn", None) or getattr(model, "func", None)) is not None:
            layers.append([type(model).__qualname__, getattr(model, "args", ()), getattr(model, "keywords", {})])
            model = inner
        return ["numpyro", model, layers, self.static, self.plate, self.factors]

    def bind(self, batch: Batch) -> Model:
        require(
            isinstance(batch, Mapping) and bool(jax.tree.leaves(batch)),
            "data of a NumPyro model",
            got=type(batch).__name__,
            expected="a mapping from argument names to arrays, or a DataFrame",
            fix='Pass {"x": x, "y": y} for a model with the arguments x and y.',
        )
        rows = jax.tree.map(np.asarray, dict(batch))
        source = Source(self.function, self.static, _arguments(self.function, rows, self.static))
        structure, _ = look_at_rows(source, rows, self.plate, self.factors)
        found = _Bound(source, structure, first_rows(some_rows(rows), NUM_TEMPLATE_ROWS))
        kept = _check(found, rows)
        found = replace(found, deterministics=kept)
        return Model(
            found.log_prior,
            found.log_likelihood,
            initial_position=found.initial_position,
            constrain=found.constrain,
            unconstrain=found.unconstrain,
            predictive=found.predictive,
            observed=found.observed,
            dims={**structure.dims, **self.dims},
            coords=self.coords,
            data=batch,
            name=self.name,
            identity=self.identity,
        )


def _arguments(function: Callable[..., Any], rows: Mapping[str, Any], static: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the arguments; those of the data must be among them, and none may be missing."""
    parameters = inspect.signature(_innermost(function)).parameters
    takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
    named = {
        name: item
        for name, item in parameters.items()
        if item.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    given = {*rows, *static}
    unknown = sorted(str(name) for name in given - set(named))
    require(
        takes_any or not unknown,
        "data of a NumPyro model",
        got=f"{unknown}",
        expected=f"names of arguments of the model ({', '.join(named) or 'it has none'})",
        fix="Rename those keys or leave them out; arguments that are not rows go to from_numpyro(..., static=...).",
    )
    both = sorted(set(rows) & set(static))
    require(
        not both, "static", got=f"{both}, also in the data", expected="one place", fix="Leave it out of one of them."
    )
    missing = sorted(
        name for name, item in named.items() if item.default is inspect.Parameter.empty and name not in given
    )
    require(
        not missing or _is_partial(function),
        "data of a NumPyro model",
        got=f"nothing for the arguments {missing}",
        expected="a value for every argument without a default",
        fix="Add arrays of rows to the data, other values to from_numpyro(..., static=...), or None if that is meant.",
    )
    return tuple(named) if missing else tuple(name for name in named if name in given)


def _is_partial(function: Any) -> bool:
    while function is not None:
        if isinstance(function, partial):
            return True
        function = getattr(function, "fn", None)
    return False


@dataclass(frozen=True, eq=False)
class _Bound:
    """A model that has seen its data: the functions of a :class:`Model`."""

    source: Source
    structure: Structure
    template: Mapping[str, Any]
    deterministics: tuple[str, ...] = ()

    def _trace(self, position: Position, batch: Batch) -> dict[str, Any]:
        latents = unconstrained(position)
        return run_model(self.source, batch, plate=self.structure.plate, key=jax.random.key(0), latents=latents)

    def log_prior(self, position: Position) -> jax.Array:
        return self.log_prior_given(position, self.template)

    def log_prior_given(self, position: Position, batch: Batch) -> jax.Array:
        """Everything without a row axis; it should not depend on the batch."""
        trace = self._trace(position, batch)
        terms = [
            jnp.sum(site_log_prob(site))
            for name, site in trace.items()
            if site["type"] == "sample" and name not in self.structure.row_sites
        ]
        return sum(terms, start=jnp.zeros(()))

    def log_likelihood(self, position: Position, batch: Batch) -> jax.Array:
        trace = self._trace(position, batch)
        scale = self._plate_scale(trace)
        total = jnp.zeros(num_rows_of(batch))
        for name, axis in self.structure.row_sites.items():
            by_row = jnp.moveaxis(site_log_prob(trace[name]), axis, 0)
            total = total + by_row.reshape(by_row.shape[0], -1).sum(axis=1) / scale
        return total

    def _plate_scale(self, trace: Mapping[str, Any]) -> float:
        """N / B, by which a plate that subsamples rows has multiplied."""
        if self.structure.plate is None or self.structure.plate not in trace:
            return 1.0
        plate = trace[self.structure.plate]
        return float(plate["args"][0] / plate["value"].shape[0])

    def initial_position(self, key: Key) -> Position:
        """A uniform draw on the unconstrained scale, nearer to zero if the density is not finite there."""
        position: Position = {}
        for number, radius in enumerate(START_RADII):
            position, is_finite = _draw(self, jax.random.fold_in(key, number), radius)
            if isinstance(is_finite, jax.core.Tracer) or bool(is_finite):
                break
        return position

    def constrain(self, position: Position) -> dict[str, jax.Array]:
        trace = self._trace(position, self.template)
        return {name: trace[name]["value"] for name in (*self.structure.latents, *self.deterministics)}

    def unconstrain(self, values: Mapping[str, Any], position: Position) -> Position:
        from numpyro.distributions import biject_to

        unknown = sorted(set(values) - set(self.structure.latents)) if isinstance(values, Mapping) else [repr(values)]
        require(
            not unknown,
            "initvals",
            got=f"{unknown}",
            expected=f"values of some of the parameters {list(self.structure.latents)}",
            fix="Pass a mapping from names of sample sites to values on their own scale.",
        )
        moved = dict(position)
        for name in self.structure.latents:
            if name in values:
                site = self._trace(moved, self.template)[name]
                value = jnp.broadcast_to(jnp.asarray(values[name], float), jnp.shape(site["value"]))
                moved[name] = biject_to(site["fn"].support).inv(value)
        return moved

    def predictive(self, key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
        values = {name: site["value"] for name, site in self._trace(position, self.template).items()}
        given = {name: values[name] for name in self.structure.latents}
        trace = run_model(
            self.source,
            batch,
            plate=self.structure.plate,
            key=key,
            latents=partial(_with_latents, given),
            inner=partial(_draw_again, self.structure.responses),
        )
        axes = {name: self.structure.row_sites[name] for name in self.structure.responses}
        axes |= self.structure.row_deterministics
        return {name: jnp.moveaxis(trace[name]["value"], axis, 0) for name, axis in axes.items()}

    def observed(self, batch: Batch) -> dict[str, Any]:
        """Responses as the model observes them."""
        return _observe(self, batch)


def _axis_from_right(axis: int, site: Any) -> int:
    """A row axis of the log-probabilities as an axis of the values, which may lack leading axes."""
    return int(axis - len(site["fn"].batch_shape) - len(site["fn"].event_shape))


def _with_latents(given: Mapping[str, Any], model: Any) -> Any:
    from numpyro import handlers

    return handlers.substitute(model, data=dict(given))


def _draw_again(responses: tuple[str, ...], model: Any) -> Any:
    """Observed responses become unobserved, so that the model draws new ones."""
    from numpyro.primitives import Messenger

    class DrawAgain(Messenger):
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "sample" and msg["name"] in responses:
                msg["value"], msg["is_observed"] = None, False

    return DrawAgain(model)


@partial(jax.jit, static_argnums=0)
def _observe(bound: _Bound, batch: Batch) -> dict[str, Any]:
    trace = run_model(bound.source, batch, plate=bound.structure.plate, key=jax.random.key(0), latents=drawn({}, 0.0))
    count = num_rows_of(batch)
    found = {name: jnp.asarray(trace[name]["value"]) for name in bound.structure.responses}
    axes = {name: _axis_from_right(bound.structure.row_sites[name], trace[name]) for name in found}
    return {
        name: jnp.moveaxis(value, axes[name], 0)
        for name, value in found.items()
        if value.ndim >= -axes[name] and value.shape[axes[name]] == count
    }


@partial(jax.jit, static_argnums=0)
def _evaluate(bound: _Bound, position: Position, batch: Batch) -> dict[str, Any]:
    """Everything that is tried out: prior, rows, and deterministic sites that should not depend on rows."""
    trace = bound._trace(position, batch)
    return {
        "prior": bound.log_prior_given(position, batch),
        "rows": bound.log_likelihood(position, batch),
        "deterministics": {name: trace[name]["value"] for name in bound.structure.other_deterministics},
    }


@partial(jax.jit, static_argnums=0)
def _draw(bound: _Bound, key: Key, radius: float) -> tuple[Position, jax.Array]:
    """An unconstrained start, and whether the density of a few rows is finite there."""
    record: dict[str, jax.Array] = {}
    run_model(bound.source, bound.template, plate=bound.structure.plate, key=key, latents=drawn(record, radius))
    position = {name: record[name] for name in bound.structure.latents}
    found = _evaluate(bound, position, bound.template)
    return position, jnp.isfinite(found["prior"]) & jnp.all(jnp.isfinite(found["rows"]))


def _check(bound: _Bound, rows: Mapping[str, Any]) -> tuple[str, ...]:
    """Try the model on a few rows at random positions; return the deterministic sites that do not depend on rows."""
    key = jax.random.key(0)
    position = bound.initial_position(key)
    check_rows_are_independent(
        lambda at, batch: _evaluate(bound, at, batch)["rows"], position, rows, subject="NumPyro model"
    )
    some, others = some_rows(rows), some_rows(rows, shift=1)
    fewer = first_rows(some, NUM_FEWER)
    found = [_evaluate(bound, position, batch) for batch in (some, others, fewer)]
    if not all(agree(found[0]["prior"], other["prior"]) for other in found[1:]):
        culprits = _dependent_sites(bound, position, [some, others, fewer])
        raise InputError(
            "NumPyro model",
            got=f"a term without a row axis that changes with the rows (site {', '.join(map(repr, culprits))})",
            expected="a prior that does not depend on rows, and a likelihood with one value for each row",
            fix="A prior scaled by the data: compute the scale beforehand and pass it with static={...}. A factor or "
            "an observed site: give it one value per row in the plate of rows, not their sum.",
        )
    kept = tuple(
        name
        for name in bound.structure.other_deterministics
        if all(agree(found[0]["deterministics"][name], other["deterministics"][name]) for other in found[1:])
    )
    dropped = sorted(set(bound.structure.other_deterministics) - set(kept))
    if dropped:
        warnings.warn(
            f"Deterministic sites {dropped} summarise rows: on a coreset they would be wrong, and results leave them "
            "out. Compute them from fit.predict or from the draws.",
            stacklevel=2,
        )
    return kept


def _dependent_sites(bound: _Bound, position: Position, batches: list[Any]) -> list[str]:
    values = []
    for batch in batches:
        trace = bound._trace(position, batch)
        values.append({name: jnp.sum(site_log_prob(trace[name])) for name in bound.structure.shared_sites})
    return [name for name in values[0] if not all(agree(values[0][name], other[name]) for other in values[1:])]
