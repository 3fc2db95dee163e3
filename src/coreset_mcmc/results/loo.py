"""Leave-one-out cross-validation over all rows, in bounded memory, from draws of a coreset posterior.

For row i the draws theta_s stand for the posterior without that row with weights proportional to
r_s exp(-l_i(theta_s)), Pareto-smoothed (Vehtari, Gelman and Gabry 2017). For draws of the full posterior r_s = 1. Draws
of a coreset posterior come from elsewhere, and r_s = exp(sum_n l_n - sum_m w_m l_m) brings them to the full posterior:
one more pass over the rows. Where that cannot be trusted (k-hat above 0.7) the correction is left out, with a warning,
except that draws which are impossible under some row are still left out.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import require
from coreset_mcmc.core.trees import num_positions, thinned
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.blocks import by_blocks, rows_of
from coreset_mcmc.models.model import Model
from coreset_mcmc.results.ratios import good_shape, log_likelihoods, ratios_to_full

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData


@entry_point
def loo(
    model: Model,
    positions: Position,
    data: Any,
    *,
    coreset: tuple[np.ndarray, np.ndarray] | None,
    draws: int | None,
    reweight: bool,
) -> ELPDData:
    """See :meth:`coreset_mcmc.Fit.loo`."""
    rows = rows_of(data, "loo")
    kept = thinned(positions, draws)
    count = num_positions(kept)
    require(
        count >= 25,
        "draws",
        got=count,
        expected="at least 25 draws",
        fix="Pareto smoothing fits a tail to the largest fifth of them; use more draws.",
    )
    good_k = good_shape(count)
    log_ratios = np.zeros(count)
    influence = np.nan
    if coreset is not None and reweight:
        log_ratios, influence = ratios_to_full(model, kept, rows, *coreset)
        num_possible = int(np.isfinite(log_ratios).sum())
        require(
            num_possible > 0,
            "fit.loo",
            got="draws of the coreset posterior that are all impossible under rows outside the coreset",
            expected="draws that the full posterior has, too",
            fix="Use a larger coreset_size.",
        )
        if not influence < good_k:
            warnings.warn(
                f"The coreset posterior is too far from the full one to be corrected (Pareto k-hat {influence:.2f}, "
                f"above {good_k:.2f}): LOO is that of the coreset posterior{_without(count - num_possible)}. Use a "
                "larger coreset_size.",
                stacklevel=4,
            )
            log_ratios = np.where(np.isfinite(log_ratios), 0.0, -np.inf)
    parts = [values for _, values in by_blocks(partial(_row_values, model, kept, log_ratios), rows, 3 * count)]
    elpd, lppd, pareto_k = (np.concatenate([part[place] for part in parts]) for place in range(3))
    num_bad = int(np.sum(~(pareto_k <= good_k)))
    if num_bad > 0:
        warnings.warn(
            f"The Pareto k-hat of {num_bad} of {rows.size} rows is above {good_k:.2f}: without such a row the "
            "posterior is too different, and the estimate for it is unreliable (usually too high). Look at those rows "
            "(loo.pareto_k), use more draws, or a likelihood with heavier tails.",
            stacklevel=4,
        )
    from arviz_stats.utils import ELPDData  # noqa: PLC0415 - takes a second

    return ELPDData(
        kind="loo",
        elpd=float(elpd.sum()),
        se=float(np.sqrt(rows.size * np.var(elpd))),
        p=float(lppd.sum() - elpd.sum()),
        n_samples=count,
        n_data_points=rows.size,
        scale="log",
        warning=num_bad > 0,
        good_k=good_k,
        elpd_i=xarray.DataArray(elpd, dims="row"),
        pareto_k=xarray.DataArray(pareto_k, dims="row"),
        approx_posterior=coreset is not None,
        influence_pareto_k=xarray.DataArray(influence),
    )


def _without(num_impossible: int) -> str:
    return f" without {num_impossible} draws that are impossible under some rows" if num_impossible else ""


@partial(jax.jit, static_argnums=0)
def _row_values(model: Model, positions: Position, log_ratios: jax.Array, batch: Batch, start: int) -> Any:
    """The expected log predictive density, the log predictive density and k-hat of each row."""
    from blackjax.diagnostics import psis_weights  # noqa: PLC0415 - BlackJAX takes a second to import

    values = log_likelihoods(model, positions, batch, start)
    normalised = log_ratios - jax.nn.logsumexp(log_ratios)

    def one_row(row: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        is_possible = normalised > -jnp.inf
        log_weights, shape = psis_weights(jnp.where(is_possible, normalised - row, -jnp.inf))
        return jax.nn.logsumexp(log_weights + row), jax.nn.logsumexp(normalised + row), shape

    return jax.vmap(one_row)(values)
