"""Which columns are wanted, and one type for each in all files."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.scans.footer import Footer
from coreset_mcmc.scans.numbers import number_type
from coreset_mcmc.scans.text import is_index

Shape = Mapping[str, str | tuple[str, ...]]
"""From a key of a batch to its column, or to the columns of its matrix."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column in all files."""

    kind: Any
    """The Arrow type that holds the values of all files."""
    lacks: bool | None
    """Whether values are missing anywhere; None if a file does not say."""


def wanted(columns: Any) -> Shape | None:
    """The user's ``columns`` in one form; None for all."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        shape = {key: value if isinstance(value, str) else _names(value) for key, value in columns.items()}
        is_right = all(isinstance(key, str) and value is not None for key, value in shape.items())
    else:
        names = _names(columns)
        shape = dict(zip(names or (), names or (), strict=True))
        is_right = names is not None and len(shape) == len(names)
    require(
        is_right and bool(shape),
        "columns",
        got=repr(columns)[:200],
        expected="a list of different names, or a mapping such as {'x': ['x1', 'x2'], 'y': 'y'}",
        fix="Leave it out to have all columns.",
    )
    return shape  # type: ignore[return-value]


def _names(given: Any) -> tuple[str, ...] | None:
    is_list = isinstance(given, Sequence) and not isinstance(given, str) and bool(given)
    return tuple(given) if is_list and all(isinstance(name, str) for name in given) else None


def flat(shape: Shape) -> list[str]:
    """All columns that a batch is made of, each once."""
    names = [name for value in shape.values() for name in ([value] if isinstance(value, str) else value)]
    return list(dict.fromkeys(names))


def common_columns(shown: str, footers: Mapping[str, Footer], shape: Shape | None) -> dict[str, Column]:
    """The wanted columns with their types, after a look at every file."""
    for file, footer in footers.items():
        repeated = sorted(name for name, count in Counter(footer.schema.names).items() if count > 1)
        require(
            not repeated,
            file,
            got=f"repeated columns {repeated}",
            expected="one column for each name",
            fix="Rename or drop the repeated columns.",
        )
    known = dict.fromkeys(name for footer in footers.values() for name in footer.schema.names if not is_index(name))
    names = list(known) if shape is None else flat(shape)
    for name in names:
        require(
            name in known,
            f"scan {shown}",
            got=f"no column {name!r}",
            expected=f"one of {list(known)[:20]}{' ...' if len(known) > 20 else ''}",
            fix=suggestion(name, known),
        )
    require(bool(names), f"scan {shown}", got="no columns", expected="at least one", fix="Check what wrote the files.")
    return {name: _common(name, footers) for name in names}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Names that look like one that is not there."""
    by_lower = {item.lower(): item for item in known}
    close = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
    return f"Did you mean {' or '.join(map(repr, close))}?" if close else "Check the spelling."


def _common(name: str, footers: Mapping[str, Footer]) -> Column:
    import pyarrow as pa

    by_type: dict[Any, str] = {}
    for file, footer in footers.items():
        place = footer.schema.get_field_index(name)
        if place < 0:
            other = next(file for file, footer in footers.items() if name in footer.schema.names)
            raise InputError(
                file,
                got=f"no column {name!r}",
                expected=f"the columns of the other files, such as {other}",
                fix="Write the file again, or leave it or the column out.",
            )
        by_type.setdefault(footer.schema.field(place).type, file)
    kind = common_type(list(by_type))
    if kind is None:
        raise InputError(
            f"column {name!r}",
            got=" but ".join(f"{kind} in {file}" for kind, file in list(by_type.items())[:3]),
            expected="the same type in every file, or numbers of any size",
            fix="Write those files again with one type.",
        )
    said = [footer.lacks.get(name, False) for footer in footers.values()]
    said.append(any(pa.types.is_null(found) for found in by_type))
    return Column(kind, True if any(said) else (None if None in said else False))


def common_type(kinds: Sequence[Any]) -> Any:
    """What holds the values of all: the widest of numbers, text for text in any form; None if nothing does."""
    import pyarrow as pa

    there = [kind for kind in dict.fromkeys(kinds) if not pa.types.is_null(kind)]
    if len(there) <= 1:
        return there[0] if there else pa.null()
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in there]
    numbers = [number_type(kind, None) for kind in plain]
    known = [kind for kind in numbers if kind is not None]
    if len(known) == len(plain):
        return pa.from_numpy_dtype(np.result_type(*known))
    if known:
        return None
    try:
        schemas = [pa.schema([("column", kind)]) for kind in plain]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def check_numbers(shown: str, columns: Mapping[str, Column]) -> None:
    """Models take numbers; formulas take more."""
    for name, column in columns.items():
        require(
            number_type(column.kind, column.lacks) is not None,
            f"column {name!r} of scan {shown}",
            got=f"values of type {column.kind}",
            expected="numbers or booleans",
            fix="Choose columns of numbers with columns=[...]; text and categories are understood in formulas "
            "(cm.from_formula); turn dates into numbers first, e.g. days since a start.",
        )
