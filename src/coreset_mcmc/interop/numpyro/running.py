"""Running a NumPyro model on a batch of rows: its trace, with the latents where they should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.models.rows import num_rows_of

JACOBIAN = "_{}_log_det"


@dataclass(frozen=True)
class Source:
    """A NumPyro model and how to call it."""

    function: Callable[..., Any]
    static: Mapping[str, Any]
    arguments: tuple[str, ...]
    """Names of all arguments that the function takes by keyword; empty if it takes any."""
    sizes: tuple[str, ...] = ()
    """Those of the static arguments that are the number of rows, whatever that is."""
    masks: tuple[tuple[str, Any], ...] = ()
    """Columns that have the same known value in all rows of a batch, and that value."""

    def keywords(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        count = num_rows_of(batch)
        absent = {name: None for name in self.arguments if name not in batch and name not in self.static}
        known = {name: np.full(count, value) for name, value in self.masks}
        return {**absent, **self.static, **dict.fromkeys(self.sizes, count), **batch, **known}


def safe(name: str) -> str:
    """The name of a site in results, where a slash, which ``handlers.scope`` puts in, would be a group of a file."""
    return name.replace("/", ".")


def traced_model(
    source: Source,
    batch: Mapping[str, Any],
    *,
    plate: str | None,
    key: Key,
    latents: Callable[[Any], Any],
    inner: Callable[[Any], Any] = lambda model: model,
) -> Any:
    """NumPyro's trace handler around the model, with the whole batch in its plate and the latents from a handler."""
    from numpyro import handlers

    model = inner(_whole_plate(source.function, plate, num_rows_of(batch)))
    return handlers.trace(latents(handlers.seed(model, key)))


def run_model(source: Source, batch: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The trace of the model on a batch; options as for :func:`traced_model`."""
    arrays = jax.tree.map(jnp.asarray, dict(batch))
    trace: dict[str, Any] = traced_model(source, arrays, **options).get_trace(**source.keywords(arrays))
    return trace


def _whole_plate(function: Callable[..., Any], plate: str | None, num_rows: int) -> Callable[..., Any]:
    """Every row of the batch is in the plate that subsamples rows; other plates must not be random."""
    from numpyro.primitives import Messenger

    class WholePlate(Messenger):  # type: ignore[misc]
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "plate" and msg["value"] is None and plate in (None, msg["name"]):
                msg["args"] = (msg["args"][0], num_rows)
                msg["value"] = jnp.arange(num_rows)

    return WholePlate(function)


def drawn(radius: float) -> Callable[[Any], Any]:
    """A handler that draws continuous latents uniformly on the unconstrained scale.

    Priors are not asked for draws: improper ones have none, and vague ones have extreme ones.
    """
    from numpyro import handlers
    from numpyro.distributions import biject_to

    def value_of(site: Any) -> Any:
        if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
            return None
        return biject_to(site["fn"].support)(unconstrained_draw(site, radius))

    return lambda model: handlers.substitute(model, substitute_fn=value_of)


def unconstrained_draw(site: Any, radius: float) -> jax.Array:
    """What :func:`drawn` draws for a site: always the same, because the site holds its key."""
    from numpyro.distributions import biject_to

    transform = biject_to(site["fn"].support)
    shape = transform.inverse_shape(site["fn"].shape(site["kwargs"].get("sample_shape", ())))
    return jax.random.uniform(site["kwargs"]["rng_key"], shape, minval=-radius, maxval=radius)


def unconstrained(position: Position) -> Callable[[Any], Any]:
    """A handler that gives latents their values from unconstrained numbers and adds the Jacobians as factors."""
    from numpyro import factor, handlers
    from numpyro.distributions import biject_to, constraints

    def value_of(site: Any) -> Any:
        if site["type"] != "sample" or site["is_observed"] or safe(site["name"]) not in position:
            return None
        support = site["fn"].support
        transform = biject_to(support)
        given = jnp.asarray(position[safe(site["name"])])
        base = getattr(support, "base_constraint", support)
        if base is constraints.real:
            return given
        value = transform(given)
        log_det = transform.log_abs_det_jacobian(given, value)
        extra = jnp.ndim(log_det) - jnp.ndim(value) + len(site["fn"].event_shape)
        factor(JACOBIAN.format(site["name"]), log_det.sum(tuple(range(-extra, 0))) if extra > 0 else log_det)
        return value

    return lambda model: handlers.substitute(model, substitute_fn=value_of)


def site_log_prob(site: Any) -> jax.Array:
    """As NumPyro counts it, with masks and scales, before any sum."""
    log_prob = site["fn"].log_prob(site["value"], *([site["intermediates"]] if site["intermediates"] else []))
    result: jax.Array = log_prob if site["scale"] is None else site["scale"] * log_prob
    return result
