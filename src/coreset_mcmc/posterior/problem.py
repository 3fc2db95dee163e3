"""What a method works on: a model, its data, the chosen rows and where the chains start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.precision import working_array
from coreset_mcmc.core.randomness import split
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.data.finite import check_in_memory
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.task import SumOver, Task
from coreset_mcmc.data.values import checks_of_values, raise_on_values
from coreset_mcmc.models.host import HostFunction
from coreset_mcmc.models.independence import advice_on_shape, check_rows_are_independent, start_and_another, values_on
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class Problem:
    """All arguments of a compiled step that do not change while it runs."""

    data: DataSource
    """Arrays of compiled programs; the rows of :attr:`passes` for methods that work by those."""
    indices: jax.Array | np.ndarray
    rows: Batch
    initial_weights: jax.Array
    initial_positions: Position
    """One start for each chain, with a leading chain axis."""
    model: Model = static()
    room: int = static(default=0)
    """Rows that programs are made for, if there are more than the coreset has: those missing weigh nothing."""

    @property
    def coreset_size(self) -> int:
        return int(self.indices.shape[0])

    @property
    def program_size(self) -> int:
        """Rows in programs."""
        return max(self.coreset_size, self.room)

    @property
    def position(self) -> Position:
        """Where the first chain starts: the structure, shapes and types of any position."""
        return jax.tree.map(lambda leaf: leaf[0], self.initial_positions)

    @property
    def passes(self) -> Rows:
        """The data of a method that works by passes."""
        data: Any = self.data
        assert isinstance(data, Rows)
        return data

    def target(self, weights: jax.Array | np.ndarray) -> CoresetTarget:
        return self.roomy_target(self.rows, weights)

    def roomy_target(self, rows: Batch, weights: Any, term: Any = None) -> CoresetTarget:
        """A target of these rows, filled up."""
        missing = max(self.room - len(weights), 0)
        padded = np.pad(np.asarray(weights, np.float64), (0, missing)) if missing else weights
        return CoresetTarget(self.roomy(rows), cast(jax.Array, padded), self.model, term)

    def roomy(self, rows: Batch) -> Batch:
        """Rows of a coreset, the first of them repeated until there are as many as programs are made for."""

        def filled(leaf: Any) -> Any:
            missing = self.room - len(leaf)
            return leaf if missing <= 0 else np.concatenate([leaf, np.repeat(np.asarray(leaf)[:1], missing, axis=0)])

        return jax.tree.map(filled, rows)


def make_problem(
    model: Model, data: DataSource | Rows, selected: SelectedRows, initial_positions: Position, room: int = 0
) -> Problem:
    """Gather the chosen rows once; they stay in memory beside the data."""
    return Problem(
        data=cast(DataSource, data),
        indices=jax.device_put(np.asarray(selected.indices)),
        rows=jax.device_put(data.take(np.asarray(selected.indices))),
        initial_weights=jax.device_put(np.asarray(selected.weights, np.float64)),
        initial_positions=initial_positions,
        model=model.compiled or model,
        room=0 if isinstance(model.log_likelihood, HostFunction) else room,
    )


def starting_positions(model: Model, key: Key, num_chains: int, initvals: Position | None = None) -> Position:
    """A start for each chain: the user's, or the model's, drawn anew for each chain if it is a function."""
    start = model.initial_position if initvals is None else initvals
    if initvals is not None and model.unconstrain is not None:
        start = _with_values(model, key, initvals)
    require(
        start is not None,
        f"model {model.name!r}",
        got="no initial_position",
        expected="a pytree of arrays, or a function of a key",
        fix="Pass Model(..., initial_position=...) or fit(..., initvals=...).",
    )
    if callable(start):
        drawn = [start(chain_key) for chain_key in split(key, num_chains)]
        return jax.tree.map(lambda *leaves: jax.device_put(np.stack([working_array(leaf) for leaf in leaves])), *drawn)
    return jax.tree.map(lambda leaf: jax.device_put(np.stack([working_array(leaf)] * num_chains)), start)


def _with_values(model: Model, key: Key, initvals: Any) -> Position:
    """The user's values in the model's own start, on the scale on which chains move."""
    assert model.unconstrain is not None
    own = model.initial_position(key) if callable(model.initial_position) else model.initial_position
    return model.unconstrain(initvals, own)


def check_model(model: Model, rows: Rows, positions: Position) -> None:
    """Shapes by abstract evaluation, then values at the start: everything a model can get wrong before work begins.

    One pass over the rows.
    """
    checked = "checked", model, b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(positions))
    if checked in rows.memory:
        return
    position = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[0]), positions)
    for path, leaf in jax.tree_util.tree_leaves_with_path(positions):
        require(
            bool(np.all(np.isfinite(np.asarray(leaf)))),
            f"initial position{jax.tree_util.keystr(path)}",
            got="NaN or infinite values",
            expected="finite values",
            fix="Pass other initvals.",
        )
    prior_shape = _shape_of(model.log_prior, (position,), "log_prior(position)", "It must be a JAX function.")
    require(
        prior_shape == (),
        "log_prior(position)",
        got=f"shape {prior_shape}",
        expected="a scalar",
        fix="Sum the log-densities of all parameters.",
    )
    for count in (1, 3):
        _check_likelihood_shape(model, rows, position, count)
    whole = rows.source.whole()
    if model.check_data is not None and whole is not None:
        model.check_data(whole)
    _check_start_values(model, rows, positions)
    _check_rows(model, rows.resident.rows if whole is None else whole, position)
    rows.memory[checked] = True


def _shape_of(function: Any, arguments: tuple[Any, ...], subject: str, fix: str) -> tuple[int, ...]:
    try:
        return tuple(jax.eval_shape(function, *arguments).shape)
    except InputError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        summary = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            subject, got=f"{type(error).__name__}: {summary}", expected="a function that runs", fix=fix
        ) from error


def _check_likelihood_shape(model: Model, rows: Rows, position: Position, count: int) -> None:
    batch = rows.types(count)
    subject = f"log_likelihood(position, batch) on a batch of {count} rows"
    advice = (
        "It is called with a few rows as well as with all of them: it must not use the number of rows of the full "
        "data, and no parameter may belong to a single row (sum or integrate such latents out first)."
    )
    shape = _shape_of(model.log_likelihood, (position, batch), subject, advice)
    require(
        shape == (count,),
        subject,
        got=f"shape {shape}",
        expected=f"shape ({count},), one value per row",
        fix=f"{advice_on_shape(shape, count)} {advice}",
    )


@dataclass(frozen=True)
class _BadRows:
    """How many rows of a block have no finite log-likelihood at some of the positions."""

    model: Model

    def __call__(self, batch: Batch, weights: jax.Array, positions: Position) -> jax.Array:
        values = jax.vmap(lambda position: self.model.log_likelihood(position, batch))(positions)
        return jnp.sum((weights != 0) & ~jnp.all(jnp.isfinite(values), axis=0))


def _check_start_values(model: Model, rows: Rows, positions: Position) -> None:
    model_in_programs = model.compiled or model
    starts = _distinct(positions)
    priors = np.asarray(log_priors(model_in_programs, starts))
    require(
        bool(np.all(np.isfinite(priors))),
        "log_prior at the initial position",
        got=priors,
        expected="finite values",
        fix="Start inside the support of the prior: pass other initvals.",
    )
    tasks = [Task(SumOver(_BadRows(model_in_programs)), (starts,))]
    if rows.source.whole() is None:
        tasks += checks_of_values(model.check_data, model.infinite)
    count, *found = rows.scan(tasks, "first look at the rows")
    raise_on_values(rows.source, found)
    if int(count) and model.infinite and rows.source.whole() is not None:
        check_in_memory(rows.source)
    require(
        int(count) == 0,
        "log_likelihood at the initial position",
        got=f"NaN or infinite values in {int(count)} of {rows.size} rows",
        expected="finite values",
        fix="Check the rows against the support of the likelihood, or pass other initvals.",
    )


@partial(jax.jit, static_argnums=0)
def log_priors(model: Model, positions: Position) -> jax.Array:
    """The log-prior (K,) at each of K positions with a leading axis."""
    return jax.vmap(model.log_prior)(positions)


def _distinct(positions: Position) -> Position:
    """One of each, if all are the same."""
    arrays = jax.tree.map(np.asarray, positions)
    are_same = all(bool(np.all(leaf == leaf[:1])) for leaf in jax.tree.leaves(arrays))
    return jax.tree.map(lambda leaf: leaf[:1], arrays) if are_same else arrays


def _check_rows(model: Model, batch: Batch, position: Position) -> None:
    if isinstance(model.log_likelihood, HostFunction):
        return  # tried out in Python when it was bound to the data
    check_rows_are_independent(
        partial(_values_on(), model.compiled or model),
        start_and_another(position),
        batch,
        subject="log_likelihood(position, batch)",
    )


@cache
def _values_on() -> Any:
    """Compiled once for a model, however often it is fitted."""

    def values(model: Model, positions: Position, batches: tuple[Batch, ...]) -> tuple[jax.Array, ...]:
        return values_on(model.log_likelihood, positions, batches)

    return jax.jit(values, static_argnums=0, compiler_options=quick_compilation(0))
