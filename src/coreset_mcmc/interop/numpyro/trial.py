"""A NumPyro model tried out on a few rows: its rows, and what should not depend on them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.interop.numpyro.bound import BoundModel
from coreset_mcmc.interop.numpyro.running import site_log_prob
from coreset_mcmc.models.independence import agree, check_rows_are_independent, compiled, start_and_another
from coreset_mcmc.models.rows import first_rows, some_rows

NUM_FEWER = 5


def try_out(bound: BoundModel, rows: Mapping[str, Any]) -> tuple[str, ...]:
    """Refuse dependent rows and a prior that depends on rows; return the deterministic sites that do not."""
    position = bound.initial_position(jax.random.key(0))
    check_rows_are_independent(
        compiled(bound.log_likelihood), start_and_another(position), rows, subject="NumPyro model"
    )
    some, others = some_rows(rows), some_rows(rows, shift=1)
    evaluate = jax.jit(partial(_shared, bound), compiler_options=quick_compilation(0))
    found = evaluate(position, (some, others, first_rows(some, NUM_FEWER)))
    terms = {name: [np.asarray(one[0][name]) for one in found] for name in found[0][0]}
    culprits = [name for name, values in terms.items() if not _are_equal(values)]
    if culprits:
        raise InputError(
            "NumPyro model",
            got=f"a term without a row axis that changes with the rows (site {', '.join(map(repr, culprits))})",
            expected="a prior that does not depend on rows, and a likelihood with one value for each row",
            fix="A prior scaled by the data: compute the scale beforehand and pass it with static={...}. A factor or "
            "an observed site: give it one value per row in the plate of rows, not their sum.",
        )
    dropped = sorted(
        name for name in bound.structure.other_deterministics if not _are_equal([one[1][name] for one in found])
    )
    if dropped:
        warnings.warn(
            f"Deterministic sites {dropped} summarise rows: on a coreset they would be wrong, and results leave them "
            "out. Compute them from fit.predict or from the draws.",
            stacklevel=3,
        )
    return tuple(name for name in bound.structure.other_deterministics if name not in dropped)


def _shared(
    bound: BoundModel, position: Position, batches: tuple[Batch, ...]
) -> list[tuple[dict[str, jax.Array], dict[str, Any]]]:
    """On each batch: log-probabilities of the sites that belong to no row, and deterministics without a row axis."""
    traces = [bound.trace(position, batch) for batch in batches]
    return [
        (
            {
                name: jnp.sum(site_log_prob(site))
                for name, site in trace.items()
                if site["type"] == "sample" and name not in bound.structure.row_sites
            },
            {name: trace[name]["value"] for name in bound.structure.other_deterministics},
        )
        for trace in traces
    ]


def _are_equal(values: list[Any]) -> bool:
    return all(agree(values[0], other) for other in values[1:])
