"""A Stan program whose generated quantities hold the log-likelihood of each row.

The program is called with some of the rows at a time: data with an axis of rows are cut, and the whole number that is
their count follows. Its target for those rows, less the sum of their log-likelihoods, is the prior with its Jacobians.
That this is the same prior everywhere, up to constants, is tried out: otherwise ``log_lik`` is not the likelihood of
the model block. Stan has no gradients of single rows, so derivatives are taken by differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Position
from coreset_mcmc.interop.stan.services import StanProgram, compiled
from coreset_mcmc.models.independence import agree
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.rows import some_rows

KEY = "unconstrained"
"""The name of Stan's parameters on the scale on which chains move."""
RADIUS = 2.0
"""Starts are uniform in a cube of this radius, as in Stan."""
NUM_FEW = 5
NUM_STARTS = 20


def from_stan(
    program: str | Path,
    data: Mapping[str, Any],
    *,
    log_lik: str = "log_lik",
    rows: Sequence[str] | None = None,
    name: str = "stan",
) -> Model:
    """A Stan program as a model with its rows: ``cm.fit(cm.from_stan("model.stan", data))``.

    Args:
        program: the text of the program, or a file with it.
        data: as for Stan, with all rows.
        log_lik: the vector in ``generated quantities`` with the log-likelihood of each row.
        rows: names of the data that have an axis of rows, the first one. By default all arrays that are as long as a
            whole number among the data says, if there is one such number.
        name: how the model is called in messages and files.

    Compiling takes a minute, once. Parameters and transformed parameters that do not depend on rows are shown.
    """
    text = _text_of(program)
    given = {key: np.asarray(value) for key, value in data.items()}
    names, sizes = rows_of(given, rows)
    columns = {key: given[key] for key in names}
    shared = {key: value for key, value in given.items() if key not in (*names, *sizes)}
    stan = StanProgram(compiled(text), shared, sizes, {key: value.dtype for key, value in columns.items()})
    return model_of(stan, columns, log_lik, name, identity=["stan", text, shared])


def _text_of(program: str | Path) -> str:
    """Of a file, unless it is the text itself, which has more than one line."""
    if isinstance(program, str) and "\n" in program:
        return program
    require(
        Path(program).is_file(),
        "from_stan(program)",
        got=f"{str(program)[:80]!r}, which is no file",
        expected="a file with a Stan program, or its text",
        fix="Check the path.",
    )
    return Path(program).read_text(encoding="utf-8")


def rows_of(data: Mapping[str, np.ndarray], rows: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the data with an axis of rows, and of the whole numbers that count them."""
    counts = {key: int(value) for key, value in data.items() if value.ndim == 0 and value.dtype.kind in "iu"}
    if rows is None:
        lengths = {len(value) for value in data.values() if value.ndim} & set(counts.values())
        require(
            len(lengths) == 1,
            "data of a Stan program",
            got=f"whole numbers {counts} and arrays of the lengths { {k: len(v) for k, v in data.items() if v.ndim} }",
            expected="one whole number that is the length of the arrays of rows",
            fix="Name the data that have an axis of rows: from_stan(..., rows=['x', 'y']).",
        )
        length = lengths.pop()
        rows = [key for key, value in data.items() if value.ndim and len(value) == length]
    unknown = [key for key in rows if key not in data or data[key].ndim == 0]
    lengths = {len(data[key]) for key in rows if key not in unknown}
    require(
        len(lengths) == 1 and not unknown,
        "rows of a Stan program",
        got=f"{unknown}, which are no arrays of the data" if unknown else f"the lengths {sorted(lengths)}",
        expected="arrays with a common first axis",
        fix="Name the data whose first axis counts rows.",
    )
    length = lengths.pop()
    return tuple(rows), tuple(key for key, count in counts.items() if count == length)


def model_of(stan: StanProgram, columns: Mapping[str, np.ndarray], log_lik: str, name: str, identity: Any) -> Model:
    """The model of a program that has been compiled."""
    few = some_rows(dict(columns), NUM_FEW)
    template = {key: value[:1] for key, value in few.items()}
    count = stan.num_parameters(template)
    start = _start(stan, few, count)
    _check_log_lik(stan, few, template, log_lik, start)

    def log_likelihood(position: Position, batch: Mapping[str, Any]) -> np.ndarray:
        count = len(next(iter(batch.values())))
        return np.asarray(_or_impossible(lambda: stan.values(position[KEY], batch, generated=True)[log_lik], count))

    def log_prior(position: Position) -> Any:
        whole = _or_impossible(lambda: stan.log_density(position[KEY], template), ())
        rows = log_likelihood(position, template).sum()
        return whole - rows if np.isfinite(whole) and np.isfinite(rows) else -np.inf

    shown = _shown(stan, few, template, start)
    return Model.from_callable(
        log_prior,
        log_likelihood,
        {KEY: start},
        constrain=_constrain(stan, template, shown),
        unconstrain=_unconstrain(stan, template, shown),
        data=dict(columns),
        name=name,
        identity=identity,
    )


def _or_impossible(compute: Callable[[], Any], shape: Any) -> Any:
    """What Stan computes, or minus infinity where it rejects."""
    try:
        return np.asarray(compute())
    except (ValueError, RuntimeError):
        return np.full(shape, -np.inf)


def _start(stan: StanProgram, rows: Mapping[str, Any], count: int) -> np.ndarray:
    """The first of some random positions that is possible, nearer and nearer to zero."""
    rng = np.random.default_rng(0)
    for attempt in range(NUM_STARTS):
        position = rng.uniform(-RADIUS, RADIUS, size=count) * 0.8**attempt
        if np.isfinite(_or_impossible(partial(stan.log_density, position, rows), ())):
            return position
    raise InputError(
        "Stan program",
        got=f"a log-density that is not finite at {NUM_STARTS} random positions",
        expected="a start that Stan accepts",
        fix="Check the data against the supports of the distributions: Stan itself would not start.",
    )


def _check_log_lik(
    stan: StanProgram, few: Mapping[str, Any], template: Mapping[str, Any], log_lik: str, start: np.ndarray
) -> None:
    """There is a value for each row, and their sum is what the rows add to the target."""
    values = stan.values(start, few, generated=True)
    shape = values[log_lik].shape if log_lik in values else None
    require(
        shape == (NUM_FEW,),
        "Stan program",
        got=f"{log_lik!r} of shape {shape} for {NUM_FEW} rows" if shape is not None else f"no {log_lik!r}",
        expected="a vector in generated quantities with the log-likelihood of each row",
        fix=f"Add for instance: generated quantities {{ vector[N] {log_lik}; for (n in 1:N) {log_lik}[n] = "
        "normal_lpdf(y[n] | alpha + beta * x[n], sigma); }",
    )

    def added(position: np.ndarray) -> tuple[float, float]:
        by_target = stan.log_density(position, few) - stan.log_density(position, template)
        rows, one = (stan.values(position, part, generated=True)[log_lik].sum() for part in (few, template))
        return by_target, float(rows - one)

    (target, likelihood), (other_target, other_likelihood) = added(start), added(start * 0.9 + 0.05)
    require(
        agree(other_target - target, other_likelihood - likelihood),
        "Stan program",
        got=f"{log_lik!r} whose sum changes by {other_likelihood - likelihood:.6g} between two positions, where the "
        f"target of these rows changes by {other_target - target:.6g}",
        expected="the log-likelihood of the model block, row by row",
        fix="Each row must add its own log_lik to the target, and nothing else may depend on the rows (a prior that is "
        "scaled by the data, a sum over all rows, a time series).",
    )


def _shown(
    stan: StanProgram, few: Mapping[str, Any], template: Mapping[str, Any], start: np.ndarray
) -> dict[str, tuple[int, ...]]:
    """Parameters and transformed parameters that are the same whatever the rows, with their shapes."""
    of_few, of_one = (stan.values(start, part, generated=False) for part in (few, template))
    return {key: value.shape for key, value in of_one.items() if agree(of_few[key], value)}


def _constrain(
    stan: StanProgram, template: Mapping[str, Any], shown: Mapping[str, tuple[int, ...]]
) -> Callable[[Position], dict[str, jax.Array]]:
    def values(position: Any) -> dict[str, np.ndarray]:
        found = stan.values(np.asarray(position), template, generated=False)
        return {key: found[key] for key in shown}

    def constrain(position: Position) -> dict[str, jax.Array]:
        types = {key: jax.ShapeDtypeStruct(shape, jnp.float64) for key, shape in shown.items()}
        made: dict[str, jax.Array] = jax.pure_callback(values, types, position[KEY], vmap_method="sequential")
        return made

    return constrain


def _unconstrain(
    stan: StanProgram, template: Mapping[str, Any], shown: Mapping[str, tuple[int, ...]]
) -> Callable[[Mapping[str, Any], Position], Position]:
    def unconstrain(values: Mapping[str, Any], position: Position) -> Position:
        unknown = [key for key in values if key not in shown]
        require(
            not unknown,
            "initvals",
            got=f"{unknown}",
            expected=f"names among {list(shown)}",
            fix="Give parameters of the program on their own scale.",
        )
        now = stan.values(np.asarray(position[KEY]), template, generated=False)
        return {KEY: stan.unconstrained({**now, **values}, template)}

    return unconstrain
