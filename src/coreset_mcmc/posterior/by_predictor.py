"""Second derivatives of rows that depend on the position through a linear predictor, by one product of matrices.

With eta_n the predictor of row n, J_n = d eta_n / d theta, the same everywhere because the predictor is affine, and psi
the few parameters that the likelihood l_n(psi, eta_n) reads by itself (a scale, say), the Hessian is the sum over n of

    J_n' D_n J_n + J_n' E_n + E_n' J_n + F_n,     D = d2 l / d eta2, E = d2 l / d eta d psi, F = d2 l / d psi2.

D, E and F take one derivative for eta and one for each element of psi, whatever the number of parameters. Forward over
reverse mode would take one for each parameter, and twice the products of matrices. Where it is known that parameters
are effects of levels, sums over the rows of each level take the place of products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.trees import dimension
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.model import LinearPredictor
from coreset_mcmc.models.regressors import Regressors
from coreset_mcmc.posterior.predictor_sums import PredictorSums, Unravel

FEWEST_COLUMNS = 128
"""Parameters from which on J is formed; with fewer, and where it is not known what the predictor is made of, forward
over reverse mode is quicker."""
MOST_DIRECT = 32
"""Elements of psi; a likelihood that reads more of the position by itself is differentiated as a whole."""
MOST_COLUMN_VALUES = 2**19
"""Numbers in J of the rows that go together: 4 megabytes."""
MANY_COLUMNS, NUM_PANELS = 512, 4
"""J'DJ is symmetric: from so many parameters on it is computed in panels, each from the diagonal on."""

Types = tuple[jax.ShapeDtypeStruct, ...]


class _Parts(NamedTuple):
    """Derivatives of rows in their predictors and in psi; k predictors for each row."""

    value: jax.Array
    slopes: jax.Array
    """(k, B)"""
    direct_slopes: jax.Array
    """(q,)"""
    curvatures: jax.Array
    """D and E one after the other (k, k + q, B)."""
    direct_hessian: jax.Array
    """F (q, q)."""


def direct_places(split: LinearPredictor, position: Position, batch: Batch) -> tuple[int, ...] | None:
    """Elements of the flat position that the likelihood reads by itself; None if the split is of no use here.

    It is of use if every leaf of the predictor is one number for each row, psi is small, and either it is known what
    the predictor is made of or there are many parameters.
    """
    if split.regressors is None and dimension(position) < FEWEST_COLUMNS:
        return None
    return _direct_places(split, *_form(position), *_form(batch))


@lru_cache(maxsize=64)
def _direct_places(
    split: LinearPredictor, leaves: Types, position_form: Any, columns: Types, batch_form: Any
) -> tuple[int, ...] | None:
    position, batch = jax.tree.unflatten(position_form, leaves), jax.tree.unflatten(batch_form, columns)
    rows = columns[0].shape[0]
    predicted = jax.eval_shape(split.predictor, position, batch)
    another = jax.eval_shape(split.predictor, position, jax.tree.map(_one_row_more, batch))
    are_of_rows = all(
        leaf.shape == (rows,) and other.shape == (rows + 1,)
        for leaf, other in zip(jax.tree.leaves(predicted), jax.tree.leaves(another), strict=True)
    )
    if not are_of_rows:
        return None
    program = jax.make_jaxpr(split.log_likelihood)(position, predicted, batch).jaxpr
    read = {id(variable) for equation in program.eqns for variable in equation.invars}
    read |= {id(variable) for variable in program.outvars}
    stops = np.cumsum([0, *(leaf.size for leaf in leaves)]).tolist()
    places = [
        place
        for variable, start, stop in zip(program.invars[: len(leaves)], stops[:-1], stops[1:], strict=True)
        if id(variable) in read
        for place in range(start, stop)
    ]
    return tuple(places) if len(places) <= MOST_DIRECT else None


def _form(tree: Any) -> tuple[Types, Any]:
    leaves, structure = jax.tree.flatten(tree)
    return tuple(jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves), structure


def _one_row_more(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((leaf.shape[0] + 1, *leaf.shape[1:]), leaf.dtype)


def predictor_sums(
    split: LinearPredictor,
    unravel: Unravel,
    direct: tuple[int, ...],
    batch: Batch,
    weights: jax.Array,
    flat: jax.Array,
) -> PredictorSums:
    """The sums over weighted rows, some at a time where there are many columns."""

    def of_rows(rows: Batch, own: jax.Array) -> PredictorSums:
        parts = _parts(split, unravel, direct, rows, own, flat)
        if split.regressors is None:
            return _of_columns(parts, _columns(split, unravel, rows, flat), direct)
        return _of_regressors(parts, split.regressors, unravel(flat), rows, direct)

    width = flat.size
    if split.regressors is not None:
        width = jax.eval_shape(split.regressors.of_rows, batch).dense.shape[1]
    at_once = max(_power_below(MOST_COLUMN_VALUES // (width + len(direct) + 2)), 1)
    return _some_at_a_time(of_rows, at_once, batch, weights)


def _some_at_a_time(
    function: Callable[[Batch, jax.Array], PredictorSums], at_once: int, batch: Batch, weights: jax.Array
) -> PredictorSums:
    count = weights.shape[0]
    if at_once >= count:
        return function(batch, weights)

    def of_run(start: Any, length: int) -> PredictorSums:
        def cut(leaf: jax.Array) -> jax.Array:
            return jax.lax.dynamic_slice_in_dim(leaf, start, length)

        return function(jax.tree.map(cut, batch), cut(weights))

    shapes = jax.eval_shape(lambda: of_run(0, at_once))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    whole, rest = divmod(count, at_once)

    def add(index: Any, total: PredictorSums) -> PredictorSums:
        both: PredictorSums = jax.tree.map(jnp.add, total, of_run(index * at_once, at_once))
        return both

    total: PredictorSums = jax.lax.fori_loop(0, whole, add, nothing)
    return jax.tree.map(jnp.add, total, of_run(whole * at_once, rest)) if rest else total


def _of_columns(parts: _Parts, columns: jax.Array, direct: tuple[int, ...]) -> PredictorSums:
    """From J (k, d, B)."""
    num_predictors = columns.shape[0]
    curvatures, mixed = parts.curvatures[:, :num_predictors], parts.curvatures[:, num_predictors:]
    is_single = num_predictors == 1
    curved = curvatures * columns if is_single else jnp.einsum("ijb,jdb->idb", curvatures, columns)
    left = _side_by_side(jnp.concatenate([curved, mixed, parts.slopes[:, None]], axis=1))
    products = lower_product(left, _side_by_side(columns))
    return PredictorSums(parts.value, parts.direct_slopes, products, parts.direct_hessian, direct=direct)


def _of_regressors(
    parts: _Parts, regressors: Regressors, position: Position, batch: Batch, direct: tuple[int, ...]
) -> PredictorSums:
    """From dense columns and the codes of levels."""
    rows = regressors.of_rows(batch)
    dense, factors = rows.dense, rows.by_factor
    sizes = [effects.shape[0] for effects in regressors.coefficients(position).effects]
    curvature, mixed = parts.curvatures[0, 0], parts.curvatures[0, 1:]
    by_row = jnp.concatenate([curvature * dense.T, mixed, parts.slopes, curvature[None]])
    tables = [
        jax.ops.segment_sum(
            _times(_times(curvature, factors[one][1]), factors[other][1]),
            factors[one][0] * sizes[other] + factors[other][0],
            sizes[one] * sizes[other],
        )
        for one, other in combinations(range(len(sizes)), 2)
    ]
    shapes = combinations(sizes, 2)
    return PredictorSums(
        parts.value,
        parts.direct_slopes,
        lower_product(by_row, dense.T),
        parts.direct_hessian,
        _totals(mixed, parts.slopes, curvature[None]),
        tuple(
            jax.ops.segment_sum(_times(by_row, multiplier).T, own, size)
            for (own, multiplier), size in zip(factors, sizes, strict=True)
        ),
        tuple(
            None if multiplier is None else jax.ops.segment_sum(curvature * multiplier**2, own, size)
            for (own, multiplier), size in zip(factors, sizes, strict=True)
        ),
        tuple(table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)),
        direct,
    )


def _times(values: jax.Array, multiplier: Any) -> jax.Array:
    return values if multiplier is None else values * multiplier


def _totals(*parts: jax.Array) -> jax.Array:
    """Sums over rows, of each part by itself: what is used but once XLA would compute again for every column."""
    return jnp.concatenate([jnp.sum(part, axis=1) for part in parts])


def _parts(
    split: LinearPredictor, unravel: Unravel, direct: tuple[int, ...], batch: Batch, weights: jax.Array, flat: jax.Array
) -> _Parts:
    predicted = split.predictor(unravel(flat), batch)
    leaves, structure = jax.tree.flatten(predicted)
    count, places = len(leaves), np.array(direct, int)

    def weighted(predictors: jax.Array, psi: jax.Array) -> jax.Array:
        position = unravel(flat.at[places].set(psi)) if direct else unravel(flat)
        values = split.log_likelihood(position, jax.tree.unflatten(structure, list(predictors)), batch)
        return jnp.sum(jnp.where(weights != 0, weights * values, 0.0))

    def slopes(shift: jax.Array) -> tuple[Any, tuple[jax.Array, Any]]:
        """Rows are independent, so one shift of all predictors differentiates each row by its own."""
        at = jnp.stack(leaves) + shift[:count, None], flat[places] + shift[count:]
        value, found = jax.value_and_grad(weighted, argnums=(0, 1))(*at)
        return found, (value, found)

    (curvatures, of_direct), (value, found) = jax.jacfwd(slopes, has_aux=True)(jnp.zeros(count + len(direct)))
    return _Parts(value, found[0], found[1], jnp.moveaxis(curvatures, 2, 1), of_direct[:, count:])


def _columns(split: LinearPredictor, unravel: Unravel, batch: Batch, flat: jax.Array) -> jax.Array:
    """J (k, d, B), row by row: the derivative of one row costs d, that of all rows together their number times d."""

    def predictors(at: jax.Array, row: Batch) -> jax.Array:
        predicted = split.predictor(unravel(at), jax.tree.map(lambda leaf: leaf[None], row))
        return jnp.concatenate(jax.tree.leaves(predicted))

    result: jax.Array = jax.vmap(jax.jacrev(predictors), in_axes=(None, 0), out_axes=2)(flat, batch)
    return result


def lower_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """``left @ right.T`` on and below the diagonal; some of what lies above it is zero instead."""
    size = right.shape[0]
    if size < MANY_COLUMNS:
        return left @ right.T
    width = -(-size // NUM_PANELS)
    panels = []
    for start in range(0, size, width):
        panel = left[start:] @ right[start : start + width].T
        panels.append(jnp.pad(panel, ((start, 0), (0, 0))))
    return jnp.concatenate(panels, axis=1)


def _side_by_side(array: jax.Array) -> jax.Array:
    """(k, m, B) as (m, k B)."""
    return jnp.moveaxis(array, 0, 1).reshape(array.shape[1], array.shape[0] * array.shape[2])


def _power_below(number: int) -> int:
    return 1 << max(number.bit_length() - 1, 0)
