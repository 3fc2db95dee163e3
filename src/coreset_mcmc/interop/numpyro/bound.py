"""A NumPyro model that has seen its data: the functions of a :class:`~coreset_mcmc.Model`.

Every site of the unconstrained model has a log-probability. Those of observed sites and factors with a value for each
row are the likelihood; priors, Jacobians of the transforms, and factors and observations that belong to no row are the
prior. The scale N / B of a plate that subsamples rows is undone. Discrete latents of single rows are summed out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.interop.numpyro.labels import combinations_of, with_labels
from coreset_mcmc.interop.numpyro.running import (
    Source,
    drawn,
    run_model,
    safe,
    site_log_prob,
    unconstrained,
    unconstrained_draw,
)
from coreset_mcmc.interop.numpyro.structure import Structure
from coreset_mcmc.models.rows import num_rows_of

START_RADII = (1.0, 1.0, 0.5, 0.1, 0.0)
"""Unconstrained starts are drawn from these cubes in turn until the density is finite."""


@dataclass(frozen=True, eq=False)
class BoundModel:
    """A model that has seen its data: the functions of a :class:`Model`."""

    source: Source
    structure: Structure
    template: Mapping[str, Any]
    deterministics: tuple[str, ...] = ()

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the dimensions of parameters and deterministics."""
        return self.structure.dims

    def trace(
        self, position: Position, batch: Batch, inner: Callable[[Any], Any] = lambda model: model
    ) -> dict[str, Any]:
        """What the model does on a batch with the latents at a position, and perhaps a handler inside."""
        return run_model(
            self.source,
            batch,
            plate=self.structure.plate,
            key=jax.random.key(0),
            latents=unconstrained(position),
            inner=inner,
        )

    def log_prior(self, position: Position) -> jax.Array:
        return self.log_prior_given(position, self.template)

    def log_prior_given(self, position: Position, batch: Batch) -> jax.Array:
        """Everything without a row axis; it should not depend on the batch."""
        trace = self.trace(position, batch)
        terms = [
            jnp.sum(site_log_prob(site))
            for name, site in trace.items()
            if site["type"] == "sample" and name not in self.structure.row_sites
        ]
        return sum(terms, start=jnp.zeros(()))

    def log_likelihood(self, position: Position, batch: Batch) -> jax.Array:
        labels = self.structure.labels
        if not labels:
            return self._row_terms(position, batch)

        def at_values(values: jax.Array) -> jax.Array:
            return self._row_terms(position, batch, with_labels(tuple(labels), values))

        each = jax.vmap(at_values)(jnp.asarray(combinations_of(labels)))
        total: jax.Array = jax.nn.logsumexp(each, axis=0)
        return total

    def _row_terms(
        self, position: Position, batch: Batch, inner: Callable[[Any], Any] = lambda model: model
    ) -> jax.Array:
        """Log-probabilities of all sites of each row."""
        trace = self.trace(position, batch, inner)
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
        trace = self.trace(position, self.template)
        return {safe(name): trace[name]["value"] for name in (*self.structure.latents, *self.deterministics)}

    def unconstrain(self, values: Mapping[str, Any], position: Position) -> Position:
        from numpyro.distributions import biject_to

        latents = {safe(name): name for name in self.structure.latents}
        given = {safe(name): value for name, value in values.items()} if isinstance(values, Mapping) else {}
        unknown = sorted(set(given) - set(latents)) if isinstance(values, Mapping) else [repr(values)]
        require(
            not unknown,
            "initvals",
            got=f"{unknown}",
            expected=f"values of some of the parameters {list(latents)}",
            fix="Pass a mapping from names of sample sites to values on their own scale.",
        )
        moved = dict(position)
        for name, site_name in latents.items():
            if name in given:
                site = self.trace(moved, self.template)[site_name]
                value = jnp.broadcast_to(jnp.asarray(given[name], float), jnp.shape(site["value"]))
                moved[name] = biject_to(site["fn"].support).inv(value)
        return moved

    def predictive(self, key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
        values = {name: site["value"] for name, site in self.trace(position, self.template).items()}
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
        return {safe(name): jnp.moveaxis(trace[name]["value"], axis, 0) for name, axis in axes.items()}

    def observed(self, batch: Batch) -> dict[str, Any]:
        """Responses as the model observes them."""
        result: dict[str, Any] = _observe(self, batch)
        return result


def _axis_from_right(axis: int, site: Any) -> int:
    """A row axis of the log-probabilities as an axis of the values, which may lack leading axes."""
    return int(axis - len(site["fn"].batch_shape) - len(site["fn"].event_shape))


def _with_latents(given: Mapping[str, Any], model: Any) -> Any:
    from numpyro import handlers

    return handlers.substitute(model, data=dict(given))


def _draw_again(responses: tuple[str, ...], model: Any) -> Any:
    """Observed responses become unobserved, so that the model draws new ones."""
    from numpyro.primitives import Messenger

    class DrawAgain(Messenger):  # type: ignore[misc]
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "sample" and msg["name"] in responses:
                msg["value"], msg["is_observed"] = None, False

    return DrawAgain(model)


@partial(jax.jit, static_argnums=0)
def _observe(bound: BoundModel, batch: Batch) -> dict[str, Any]:
    trace = run_model(bound.source, batch, plate=bound.structure.plate, key=jax.random.key(0), latents=drawn(0.0))
    count = num_rows_of(batch)
    found = {name: jnp.asarray(trace[name]["value"]) for name in bound.structure.responses}
    axes = {name: _axis_from_right(bound.structure.row_sites[name], trace[name]) for name in found}
    return {
        safe(name): jnp.moveaxis(value, axes[name], 0)
        for name, value in found.items()
        if value.ndim >= -axes[name] and value.shape[axes[name]] == count
    }


@partial(jax.jit, static_argnums=0)
def _draw(bound: BoundModel, key: Key, radius: float) -> tuple[Position, jax.Array]:
    """An unconstrained start, and whether the density of a few rows is finite there."""
    drawing = drawn(radius)
    trace = run_model(bound.source, bound.template, plate=bound.structure.plate, key=key, latents=drawing)
    position = {safe(name): unconstrained_draw(trace[name], radius) for name in bound.structure.latents}
    prior, rows = bound.log_prior(position), bound.log_likelihood(position, bound.template)
    return position, jnp.isfinite(prior) & jnp.all(jnp.isfinite(rows))
