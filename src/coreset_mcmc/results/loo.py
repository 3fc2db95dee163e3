"""Leave-one-out cross-validation over all rows, in bounded memory, from draws of a coreset posterior.

For row i the draws theta_s stand for the posterior without that row with weights proportional to
r_s exp(-l_i(theta_s)), Pareto-smoothed (Vehtari, Gelman and Gabry 2017). For draws of the full posterior r_s = 1. Draws
of a coreset posterior come from elsewhere, and r_s = exp(sum_n l_n - sum_m w_m l_m) brings them to the full posterior:
one more pass over the rows. Where that cannot be trusted (k-hat above 0.7) the correction is left out, with a warning,
except that draws which are impossible under some row are still left out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import require
from coreset_mcmc.core.memory import require_room
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.trees import num_positions, thinned
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.blocks import InBlocks, rows_of
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.task import Task
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.models.model import Model
from coreset_mcmc.results.loo_totals import Totals
from coreset_mcmc.results.ratios import good_shape, ratios_to_full
from coreset_mcmc.results.row_file import check_place, write_rows

if TYPE_CHECKING:
    import xarray
    from arviz_stats.utils import ELPDData
else:
    xarray = on_use("xarray")


@entry_point
def loo(
    model: Model,
    positions: Position,
    data: Any,
    *,
    coreset: SelectedRows | None,
    draws: int | None,
    reweight: bool,
    to: Path | str | None = None,
    progressbar: bool = False,
) -> ELPDData:
    """See :meth:`coreset_mcmc.Fit.loo`."""
    place = None if to is None else check_place(to)
    rows = rows_of(data, "loo", infinite=model.infinite)
    kept = thinned(positions, draws)
    count = num_positions(kept)
    require(
        count >= 25,
        "draws",
        got=count,
        expected="at least 25 draws",
        fix="Pareto smoothing fits a tail to the largest fifth of them; use more draws.",
    )
    if place is None:
        fix = 'Write the values of each row to a file as they come, with to="loo.parquet".'
        require_room("loo", 2 * 8 * rows.size, fix=fix)
    good_k = good_shape(count)
    log_ratios, influence = np.zeros(count), np.nan
    with show_passes(progressbar):
        if coreset is not None and reweight:
            log_ratios, influence = ratios_to_full(model, kept, rows, coreset, description="weights for LOO")
            num_possible = int(np.isfinite(log_ratios).sum())
            _require_possible(num_possible)
            if not influence < good_k:
                warnings.warn(_too_far(influence, good_k, count - num_possible), stacklevel=4)
                log_ratios = np.where(np.isfinite(log_ratios), 0.0, -np.inf)
        task = Task(InBlocks(_LeftOut(model), count), (kept, log_ratios))
        totals = Totals(rows.size, good_k, keeps_rows=place is None)
        parts = (totals.add(*part) for (part,) in rows.each_part([task], "LOO"))
        if place is None:
            for _ in parts:
                pass
        else:
            write_rows(place, parts)
    if totals.num_bad > 0:
        warnings.warn(_unreliable(totals, good_k, place), stacklevel=4)
    from arviz_stats.utils import ELPDData  # noqa: PLC0415 - takes a second

    return ELPDData(
        kind="loo",
        elpd=totals.elpd,
        se=totals.standard_error,
        p=totals.lppd - totals.elpd,
        n_samples=count,
        n_data_points=rows.size,
        scale="log",
        warning=totals.num_bad > 0,
        good_k=good_k,
        elpd_i=totals.of_rows("elpd"),
        pareto_k=totals.of_rows("pareto_k"),
        approx_posterior=coreset is not None,
        influence_pareto_k=xarray.DataArray(influence),
    )


def _require_possible(num_possible: int) -> None:
    require(
        num_possible > 0,
        "fit.loo",
        got="draws of the coreset posterior that are all impossible under rows outside the coreset",
        expected="draws that the full posterior has, too",
        fix="Use a larger coreset_size.",
    )


def _too_far(influence: float, good_k: float, num_impossible: int) -> str:
    without = f" without {num_impossible} draws that are impossible under some rows" if num_impossible else ""
    return (
        f"The coreset posterior is too far from the full one to be corrected (Pareto k-hat {influence:.2f}, above "
        f"{good_k:.2f}): LOO is that of the coreset posterior{without}. Use a larger coreset_size."
    )


def _unreliable(totals: Totals, good_k: float, place: Path | None) -> str:
    where = "loo.pareto_k" if place is None else f"the column pareto_k of {place}"
    return (
        f"The Pareto k-hat of {totals.num_bad} of {totals.size} rows is above {good_k:.2f}: without such a row the "
        "posterior is too different, and the estimate for it is unreliable (usually too high). Look at those rows "
        f"({where}), use more draws, or a likelihood with heavier tails."
    )


@dataclass(frozen=True)
class _LeftOut:
    """The expected log predictive density, the log predictive density and k-hat of each row."""

    model: Model

    def __call__(self, batch: Batch, place: Any, positions: Position, log_ratios: jax.Array) -> Any:
        from blackjax.diagnostics import psis_weights  # noqa: PLC0415 - BlackJAX takes a second to import

        del place
        values = jax.vmap(lambda position: self.model.log_likelihood(position, batch), out_axes=1)(positions)
        normalised = log_ratios - jax.nn.logsumexp(log_ratios)

        def one_row(row: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            is_possible = normalised > -jnp.inf
            log_weights, shape = psis_weights(jnp.where(is_possible, normalised - row, -jnp.inf))
            return jax.nn.logsumexp(log_weights + row), jax.nn.logsumexp(normalised + row), shape

        return jax.vmap(one_row)(values)
