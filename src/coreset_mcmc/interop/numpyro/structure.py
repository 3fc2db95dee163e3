"""Which sites of a NumPyro model are prior and which are rows.

The model runs abstractly on all rows and on two small numbers of rows. An axis that has the length of the batch each
time is a row axis, whatever the plate that made it is called; a size that should follow and does not is a hard-coded
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.data.convert import wide_arrays
from coreset_mcmc.interop.numpyro.labels import check_one_label
from coreset_mcmc.interop.numpyro.refusals import (
    check_factors,
    check_observed,
    refuse_equal_names,
    refuse_failure,
    refuse_failure_on_few_rows,
    refuse_unusable,
)
from coreset_mcmc.interop.numpyro.running import Source, safe
from coreset_mcmc.interop.numpyro.sites import Site, Sites, look_at, row_axis
from coreset_mcmc.models.rows import num_rows_of

SMALL_COUNTS = (3, 5)


@dataclass(frozen=True)
class Structure:
    """Which sites are prior and which are rows."""

    latents: tuple[str, ...]
    row_sites: Mapping[str, int]
    """Observed sites and factors with a value for each row: the axis of rows in their log-probabilities."""
    responses: tuple[str, ...]
    """Those of them that can be drawn anew."""
    shared_sites: tuple[str, ...]
    """All other sites with a log-probability: priors, Jacobians, factors and observations that belong to no row."""
    row_deterministics: Mapping[str, int]
    other_deterministics: tuple[str, ...]
    plate: str | None
    dims: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, int] = field(default_factory=dict)
    """Discrete latents of single rows, which are among ``row_sites``, and how many values they have."""


def look_at_rows(
    source: Source,
    batch: Mapping[str, Any],
    plate: str | None,
    factors: Mapping[str, str],
    *,
    may_be_empty: bool = False,
) -> Structure:
    """Run on all rows and on few, refuse what cannot be a coreset, and say what each site is.

    ``may_be_empty`` allows a model without terms of rows, as one is whose rows are all masked.
    """
    size = num_rows_of(batch)
    counts = [size, *SMALL_COUNTS]
    require(
        size > max(SMALL_COUNTS),
        "data",
        got=f"{size} rows",
        expected=f"more than {max(SMALL_COUNTS)}",
        fix=(wide_arrays({name: np.shape(leaf) for name, leaf in batch.items()}, size) if size else "")
        + "With so few rows sample the model directly.",
    )
    whole = look_at(source, batch, size, plate)
    refuse_failure(whole, batch)
    plate = _plate_of(whole, plate)
    runs = [whole]
    for count in SMALL_COUNTS:
        few = look_at(source, batch, count, plate)
        refuse_failure_on_few_rows(few, size)
        runs.append(few)
    refuse_unusable(runs, counts)
    refuse_equal_names(whole)
    found = _structure(runs, counts, plate, factors)
    check_observed(runs, found.row_sites, counts, may_be_empty=may_be_empty)
    return found


def _plate_of(whole: Sites, plate: str | None) -> str | None:
    """The user's data plate, or the one around observed sites that has all rows."""
    if plate is not None:
        require(
            plate in whole.plates,
            "plate",
            got=repr(plate),
            expected=f"a plate of the model ({sorted(whole.plates)})",
            fix="Leave it out to find the plate around the observed sites.",
        )
        return plate
    names = {
        name
        for site in whole.sites.values()
        if site.is_observed
        for name, _, size in site.frames
        if size == whole.num_rows
    }
    require(
        len(names) <= 1,
        "NumPyro model",
        got=f"plates {sorted(names)} around observed sites, each with as many members as there are rows",
        expected="one plate of rows",
        fix='Say which one it is: from_numpyro(..., plate="data").',
    )
    return names.pop() if names else None


def _structure(runs: list[Sites], counts: list[int], plate: str | None, factors: Mapping[str, str]) -> Structure:
    few = runs[-1]
    row_sites: dict[str, int] = {}
    shared: list[str] = []
    labels: dict[str, int] = {}
    for name, site in few.sites.items():
        if site.kind != "sample":
            continue
        of_rows = site.is_observed or site.num_values > 0
        axis = row_axis(name, [run.sites[name].log_prob_shape for run in runs], counts) if of_rows else None
        if axis is not None and site.num_values:
            check_one_label(name, site, few.num_rows)
            labels[name] = site.num_values
        if axis is None:
            shared.append(name)
        else:
            row_sites[name] = axis
    check_factors(few, row_sites, factors)
    deterministics = {
        name: row_axis(name, [run.sites[name].value_shape for run in runs], counts)
        for name, site in few.sites.items()
        if site.kind == "deterministic"
    }
    unobserved = (name for name, site in few.sites.items() if site.kind == "sample" and not site.is_observed)
    latents = tuple(name for name in unobserved if name not in labels)
    return Structure(
        latents=latents,
        row_sites=row_sites,
        responses=tuple(name for name in row_sites if not few.sites[name].is_factor and name not in labels),
        labels=labels,
        shared_sites=tuple(shared),
        row_deterministics={name: axis for name, axis in deterministics.items() if axis is not None},
        other_deterministics=tuple(name for name, axis in deterministics.items() if axis is None),
        plate=plate,
        dims={
            safe(name): tuple(map(safe, names))
            for name, site in few.sites.items()
            if name in latents or deterministics.get(name, 0) is None
            if (names := _dims_of(site, set(few.sites)))
        },
    )


def _dims_of(site: Site, site_names: set[str]) -> tuple[str, ...]:
    """Plates name the dimensions of what is in them."""
    num_axes = site.num_batch_axes if site.kind == "sample" else len(site.value_shape)
    names = [f"{site.name}_dim_{axis}" for axis in range(num_axes)]
    for name, axis, size in site.frames:
        if -axis <= num_axes and site.value_shape[num_axes + axis] == size and name not in site_names:
            names[axis] = name
    is_named = any(not name.startswith(f"{site.name}_dim_") for name in names) or site.event_dims
    return (*names, *site.event_dims) if is_named else ()
