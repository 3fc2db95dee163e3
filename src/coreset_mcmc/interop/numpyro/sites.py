"""Every site of one run of a NumPyro model, and how its shapes follow the number of rows.

The model runs abstractly, without arithmetic. What it did is returned from the abstract run, as far as it came if it
failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Key
from coreset_mcmc.interop.numpyro.running import Source, drawn, site_log_prob, traced_model

KINDS = ("sample", "deterministic", "param", "mutable")
"""Sites that matter; others belong to plates and control flow."""


@dataclass(frozen=True)
class Site:
    """One site of one run of the model."""

    name: str
    kind: str
    is_observed: bool
    is_factor: bool
    is_discrete: bool
    value_shape: tuple[int, ...]
    log_prob_shape: tuple[int, ...]
    frames: tuple[tuple[str, int, int], ...]
    """Plates around it: name, axis counted from the right, size."""
    num_batch_axes: int = 0
    event_dims: tuple[str, ...] = ()
    num_values: int = 0
    """Of a discrete latent that can be summed out."""


@dataclass(frozen=True)
class Plate:
    """A plate of one run: its size, and how many of its members are in use."""

    size: int
    subsample_size: int | None


@jax.tree_util.register_static
@dataclass(frozen=True, eq=False)
class Sites:
    """One run of the model on a number of rows."""

    num_rows: int
    sites: Mapping[str, Site] = field(default_factory=dict)
    plates: Mapping[str, Plate] = field(default_factory=dict)
    error: Exception | None = None
    """What the model raised. The plates that it made until then are known."""

    @property
    def failure(self) -> str:
        """The error in a line."""
        text = str(self.error).strip()
        return f"{type(self.error).__name__}: {text.splitlines()[0][:300] if text else ''}"


def look_at(source: Source, batch: Mapping[str, Any], num_rows: int, plate: str | None) -> Sites:
    """Run the model abstractly on ``num_rows`` rows shaped like those of the batch and say what it does."""

    def run(rows: Mapping[str, Any], key: Key) -> Sites:
        model = traced_model(source, rows, plate=plate, key=key, latents=drawn(1.0))
        try:
            trace = model.get_trace(**source.keywords(rows))
            sites = {name: _site(name, site) for name, site in trace.items() if site["type"] in KINDS}
        except InputError:
            raise
        except Exception as error:  # whatever the user's model raises
            return Sites(num_rows, plates=_plates(model.trace), error=error)
        return Sites(num_rows, sites, _plates(trace))

    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_rows, *leaf.shape[1:]), leaf.dtype), dict(batch))
    seen: Sites = jax.eval_shape(run, shapes, jax.random.key(0))
    return seen


def _plates(trace: Mapping[str, Any]) -> dict[str, Plate]:
    return {name: Plate(*site["args"]) for name, site in trace.items() if site["type"] == "plate"}


def _site(name: str, site: Any) -> Site:
    import numpyro.distributions as dist

    is_sample = site["type"] == "sample"
    distribution: Any = site.get("fn") if is_sample else None
    base = distribution
    while isinstance(base, dist.MaskedDistribution | dist.ExpandedDistribution):
        base = base.base_dist
    return Site(
        name=name,
        kind=site["type"],
        is_observed=bool(site.get("is_observed", False)),
        is_factor=isinstance(base, dist.Unit),
        is_discrete=is_sample and bool(distribution.support.is_discrete),
        value_shape=tuple(jnp.shape(site["value"])) if is_sample or site["type"] == "deterministic" else (),
        log_prob_shape=tuple(site_log_prob(site).shape) if is_sample else (),
        frames=tuple((frame.name, frame.dim, frame.size) for frame in site.get("cond_indep_stack", ())),
        num_batch_axes=len(distribution.batch_shape) if is_sample else 0,
        event_dims=tuple(site.get("infer", {}).get("event_dims", ())) if is_sample else (),
        num_values=_num_values(distribution) if is_sample and not site["is_observed"] else 0,
    )


def _num_values(distribution: Any) -> int:
    """How many values a discrete latent has, if they can be told."""
    if not distribution.support.is_discrete or not distribution.has_enumerate_support:
        return 0
    try:
        return int(distribution.enumerate_support(expand=False).shape[0])
    except (NotImplementedError, ValueError, TypeError):  # the number of trials is not the same in all rows, say
        return 0


def row_axis(name: str, shapes: list[tuple[int, ...]], counts: list[int]) -> int | None:
    """The axis, counted from the left, that has the length of the batch in every run."""
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        return None
    axes = [
        axis
        for axis in range(ranks.pop())
        if all(shape[axis] == count for shape, count in zip(shapes, counts, strict=True))
    ]
    require(
        len(axes) <= 1,
        f"site {name!r}",
        got=f"{len(axes)} axes that follow the number of rows",
        expected="one value for each row",
        fix="A dependence between pairs of rows (a kernel matrix, say) cannot be summarised by a coreset.",
    )
    return axes[0] if axes else None
