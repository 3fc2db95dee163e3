"""Which run a checkpoint belongs to: a digest of everything that determines the bits of a run.

The same settings, data and functions give the same digest in every process, so nothing here may depend on an address
in memory or on the order of a set. Functions count by their code, so that editing a model is noticed; compiled
functions, partial ones and methods count by the functions inside them. Rows say themselves what tells them from others.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import partial, singledispatch
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.data.rows import Rows

TOTALS = frozenset({"num_iterations"})
"""Settings that may grow when a run is resumed."""


def fingerprint(*parts: Any) -> str:
    """A digest of settings, functions and arrays."""
    return _digest(json.dumps([describe(part) for part in parts], sort_keys=True).encode())


def describe(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """A JSON description; ``inside`` are the objects that are being described already, which ends circles."""
    if id(value) in inside:
        return "itself"
    within = (*inside, id(value))
    if isinstance(value, str | int | float | None):
        return value
    identity = vars(value).get("identity") if is_dataclass(value) and not isinstance(value, type) else None
    if identity is not None:
        return {"type": _name(type(value)), "identity": describe(identity, within)}
    return _described(value, within)


@singledispatch
def _described(value: Any, within: tuple[int, ...]) -> Any:
    """Whatever has no rule of its own: the function that it wraps, its settings, or what it prints."""
    if hasattr(type(value), "fingerprint"):
        return {"rows": describe(value.fingerprint(), within)}
    wrapped = getattr(value, "__wrapped__", None)
    if wrapped is not None:
        return ["wrapped", describe(wrapped, within)]
    if is_dataclass(value) and not isinstance(value, type):
        settings = {field.name: describe(getattr(value, field.name), within) for field in fields(value)}
        return {"type": _name(type(value)), **{key: item for key, item in settings.items() if key not in TOTALS}}
    if isinstance(value, type):
        return _name(value)
    if "__repr__" not in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
        return {"type": _name(type(value)), "holds": describe(getattr(value, "__dict__", {}), within)}
    return repr(value)


@_described.register(np.ndarray)
@_described.register(jax.Array)
def _(value: np.ndarray | jax.Array, within: tuple[int, ...]) -> Any:
    del within
    is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    array = np.asarray(jax.random.key_data(value) if is_key else value)
    if array.dtype == object:
        return [str(array.dtype), list(array.shape), repr(array.tolist())]
    content = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
    return [str(array.dtype), list(array.shape), _digest(content)]


@_described.register(dict)
def _(value: dict[Any, Any], within: tuple[int, ...]) -> Any:
    return {str(key): describe(item, within) for key, item in value.items()}


@_described.register(list)
@_described.register(tuple)
def _(value: list[Any] | tuple[Any, ...], within: tuple[int, ...]) -> Any:
    return [describe(item, within) for item in value]


@_described.register(set)
@_described.register(frozenset)
def _(value: set[Any] | frozenset[Any], within: tuple[int, ...]) -> Any:
    return sorted(json.dumps(describe(item, within), sort_keys=True) for item in value)


@_described.register
def _(value: Rows, within: tuple[int, ...]) -> Any:
    """Neither where they lie nor who passes over them changes a bit."""
    return ["rows", describe(value.fingerprint(), within)]


@_described.register
def _(value: CellType, within: tuple[int, ...]) -> Any:
    try:
        return describe(value.cell_contents, within)
    except ValueError:
        return "empty"


@_described.register
def _(value: FunctionType, within: tuple[int, ...]) -> Any:
    settings = [value.__defaults__ or (), value.__kwdefaults__ or {}, value.__closure__ or ()]
    return [value.__module__, value.__qualname__, describe(value.__code__, within), describe(settings, within)]


@_described.register
def _(value: CodeType, within: tuple[int, ...]) -> Any:
    content = [describe(value.co_consts, within), list(value.co_names), value.co_code.hex()]
    return _digest(json.dumps(content, sort_keys=True).encode())


@_described.register(partial)
def _(value: partial[Any], within: tuple[int, ...]) -> Any:
    return ["partial", *(describe(part, within) for part in (value.func, value.args, value.keywords))]


@_described.register
def _(value: MethodType, within: tuple[int, ...]) -> Any:
    return ["method", describe(value.__func__, within), describe(value.__self__, within)]


@_described.register
def _(value: BuiltinFunctionType, within: tuple[int, ...]) -> Any:
    del within
    return f"{value.__module__}.{value.__qualname__}"


@_described.register
def _(value: ModuleType, within: tuple[int, ...]) -> Any:
    del within
    return value.__name__


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
