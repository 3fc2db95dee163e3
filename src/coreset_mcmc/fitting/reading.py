"""The first stage of a fit: the user's model and data, made ready for compiled code and checked."""

from __future__ import annotations

from typing import NamedTuple

from coreset_mcmc.core.randomness import key_of, split
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.engines.dask_frame import is_dask_frame, source_from_dask
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.methods.registry import DEFAULT_METHOD
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.with_data import bound, check_columns
from coreset_mcmc.posterior.derivatives import without_missing_derivatives
from coreset_mcmc.posterior.modes.found import Modes
from coreset_mcmc.posterior.problem import check_model, starting_positions


class Keys(NamedTuple):
    """One stream of random numbers for each stage; all follow from the seed."""

    start: Key
    pilot: Key
    train: Key
    sample: Key


class Reading(NamedTuple):
    """What the later stages work on."""

    model: Model
    """Bound to its data."""
    batch: Batch | None
    """The user's rows as they are, if they are in memory."""
    rows: Rows
    """The same, to be passed over."""
    positions: Position
    """A start for each chain of training or sampling, whichever has more, with a leading axis."""
    keys: Keys
    method: Method
    modes: Modes | None = None
    """What a search for modes has found; None where there was none."""
    exploring: Cost | None = None
    """What that search took, if it was made for this fit."""


def read(request: Request) -> Reading:
    """Convert, bind and check; the method is the user's or the default, which trains with the user's kernel."""
    method = request.method or DEFAULT_METHOD(kernel=request.kernel)
    keys = Keys(*split(key_of(request.random_seed), 4))
    data = source_from_dask(request.data) if is_dask_frame(request.data) else request.data
    rows = to_rows(data, request.engine, infinite=request.model.infinite)
    batch = rows.source.whole()
    rows.every_row_counts = isinstance(request.checkpoint, Checkpoint) and request.checkpoint.every_row
    check_columns(request.model, rows)
    model = bound(request.model, rows)
    num_starts = max(request.chains, method.num_chains)
    positions = starting_positions(model, keys.start, num_starts, request.initvals)
    check_model(model, rows, positions)
    model = without_missing_derivatives(model, rows, positions)
    return Reading(model, batch, rows, positions, keys, method)
