"""NumPyro models as they are: a function with observed rows, its data given by the names of its arguments.

What cannot be split into rows is refused with advice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.convert import check_row_axis
from coreset_mcmc.interop.infinite import with_finite_slopes
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.interop.numpyro.arguments import arguments_of, innermost
from coreset_mcmc.interop.numpyro.bound import BoundModel
from coreset_mcmc.interop.numpyro.masked_rows import MaskedModel, masked_model, picks_rows
from coreset_mcmc.interop.numpyro.running import Source
from coreset_mcmc.interop.numpyro.structure import Structure, look_at_rows
from coreset_mcmc.interop.numpyro.trial import try_out
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.rows import first_rows, num_rows_of, some_rows

NUM_TEMPLATE_ROWS = 2
"""Rows with which the prior is evaluated; it does not depend on them."""


def from_numpyro(
    model: Callable[..., Any],
    *,
    static: Mapping[str, Any] | None = None,
    plate: str | None = None,
    factors: Mapping[str, str] | None = None,
    data: Any = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Model:
    """A NumPyro model, unchanged, as a model for :func:`coreset_mcmc.fitting.fit`.

    ``cm.fit(cm.from_numpyro(model), {"x": x, "y": y})`` calls ``model(x=..., y=...)`` with some of the rows at a time.
    Handlers may be around it (``handlers.reparam``, ``handlers.condition``).

    Args:
        model: the model function; sizes must follow its arguments, e.g. ``numpyro.plate("data", x.shape[0])``.
        static: arguments that are not rows, such as the number of groups, prior scales or small tables.
        plate: name of the plate of rows; found by itself unless several could be it.
        factors: for factor sites, ``"prior"`` or ``"row"``, to state which one is meant; the model must agree.
        data: the rows, if they are not to be passed to ``fit``.
        dims, coords: names of dimensions and their labels; plates name the dimensions of what is in them anyway.
        name: how the model is called in messages; by default as the function.

    Parameters have NumPyro's names. Results hold their constrained values and all deterministic sites that do not
    depend on rows; those with a value for each row come with :meth:`~coreset_mcmc.Fit.predict`.
    """
    require(
        callable(model),
        "from_numpyro",
        got=type(model).__name__,
        expected="a NumPyro model function",
        fix="Pass the function itself, not the result of calling it.",
    )
    require_library("numpyro", "from_numpyro")
    title = name or str(getattr(innermost(model), "__name__", "numpyro model"))
    adapter = _Adapter(
        model, dict(static or {}), plate, dict(factors or {}), dict(dims or {}), dict(coords or {}), title
    )
    return Model(
        _needs_data,
        _needs_data,
        bind=adapter.bind,
        data=data,
        infinite=True,
        coords=coords,
        name=title,
        identity=adapter.identity,
    )


def _needs_data(*arguments: Any) -> Any:
    del arguments
    raise InputError(
        "NumPyro model",
        got="a call before it has seen data",
        expected="a model bound to its data",
        fix="Use model.bind(data), or cm.fit(model, data), which does so.",
    )


@dataclass(frozen=True, eq=False)
class _Adapter:
    """What the user said about the model; binding it to data makes a :class:`Model`."""

    function: Callable[..., Any]
    static: dict[str, Any]
    plate: str | None
    factors: dict[str, str]
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, Any]
    name: str

    @property
    def identity(self) -> list[Any]:
        """For checkpoints: the code and the handlers around it, without addresses in memory."""
        layers, model = [], self.function
        while (inner := getattr(model, "fn", None) or getattr(model, "func", None)) is not None:
            layers.append([type(model).__qualname__, getattr(model, "args", ()), getattr(model, "keywords", {})])
            model = inner
        return ["numpyro", model, layers, self.static, self.plate, self.factors]

    def _looked_at(self, source: Source, rows: Batch) -> tuple[Source, Structure]:
        """What the model does with its rows; a static argument that is their number follows them if it has to."""
        look = partial(look_at_rows, plate=self.plate, factors=self.factors, may_be_empty=bool(source.masks))
        try:
            return source, look(source, rows)
        except InputError:
            count = num_rows_of(rows)
            sizes = tuple(name for name, value in self.static.items() if type(value) is int and value == count)
            if not sizes:
                raise
        following = replace(source, sizes=sizes)
        return following, look(following, rows)

    def _tried(self, source: Source, rows: Batch) -> BoundModel:
        """The model with its rows, tried out on some of them."""
        source, structure = self._looked_at(source, rows)
        found = BoundModel(source, structure, first_rows(some_rows(rows), NUM_TEMPLATE_ROWS))
        return replace(found, deterministics=try_out(found, rows))

    def bind(self, batch: Batch) -> Model:
        require(
            isinstance(batch, Mapping) and bool(jax.tree.leaves(batch)),
            "data of a NumPyro model",
            got=type(batch).__name__,
            expected="a mapping from argument names to arrays, or a DataFrame",
            fix='Pass {"x": x, "y": y} for a model with the arguments x and y.',
        )
        rows = jax.tree.map(np.asarray, dict(batch))
        check_row_axis(rows)
        source = Source(self.function, self.static, arguments_of(self.function, rows, self.static))
        found: BoundModel | MaskedModel
        try:
            found = self._tried(source, rows)
        except InputError as refused:
            if not picks_rows(refused):
                raise
            found = masked_model(lambda masked: self._tried(masked, rows), source, rows, refused)
        return Model(
            found.log_prior,
            with_finite_slopes(found.log_likelihood, found.initial_position(jax.random.key(0)), rows),
            initial_position=found.initial_position,
            constrain=found.constrain,
            unconstrain=found.unconstrain,
            predictive=found.predictive,
            observed=found.observed,
            dims={**found.dims, **self.dims},
            coords=self.coords,
            data=batch,
            infinite=True,
            name=self.name,
            identity=self.identity,
        )
