"""Which rows of a table count: ``where="duration > 0 and carrier in ['AA', 'UA']"``, and weights that are not zero.

A filter may come from someone else's file. It is parsed as Python, every node of the tree is looked at against a list
of what may stand there, and it is evaluated by walking through the tree, a run of rows at a time; no part of it is
ever handed to ``eval``. A row that lacks a value in a column of the filter is left out.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import missing_by_column
from coreset_mcmc.tables.dates import DatePart, without_calls
from coreset_mcmc.tables.formula_check import NUMPY_FUNCTIONS, close_to

LONGEST = 10_000
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: np.power,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
QUOTED = re.compile(r"`([^`]+)`")
EXAMPLE = "a comparison such as \"duration > 0 and carrier in ['AA', 'UA']\""


@dataclass(frozen=True, eq=False)
class RowFilter:
    """A condition on each row."""

    text: str
    tree: ast.expr
    names: dict[str, str]
    """Columns by what they are called in the tree."""
    dates: tuple[DatePart, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.names.values()))

    def holds(self, frame: pd.DataFrame) -> np.ndarray:
        """Of each row of a run."""
        values = {name: _values(frame[column]) for name, column in self.names.items()}
        with np.errstate(all="ignore"):
            found = np.asarray(_Evaluation(self.text, values, self.names).of(self.tree))
        require(
            found.dtype == bool and found.shape in ((), (len(frame),)),
            subject_of_filter(self.text),
            got="a condition that is a number or text",
            expected=EXAMPLE,
            fix="Compare it with something.",
        )
        lacks = missing_by_column(frame, self.columns)
        complete = ~np.logical_or.reduce(list(lacks.values())) if lacks else np.ones(len(frame), bool)
        result: np.ndarray = np.broadcast_to(found, len(frame)) & complete
        return result


def subject_of_filter(text: str) -> str:
    """How a filter is called in messages."""
    return f"where {text[:80]!r}"


def read_filter(text: Any, columns: Sequence[str]) -> RowFilter:
    """Parse and check a filter for a table with ``columns``."""
    require(
        isinstance(text, str) and bool(text.strip()) and len(text) <= LONGEST,
        "where",
        got=repr(text)[:80],
        expected=EXAMPLE,
        fix="Leave it out to use all rows.",
    )
    subject = subject_of_filter(text)
    plain, dates = without_calls(text)
    quoted: dict[str, str] = {}

    def placeholder(found: re.Match[str]) -> str:
        return quoted.setdefault(found[1], f"quoted_{len(quoted)}_")

    plain = QUOTED.sub(placeholder, plain)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            subject,
            got="text that cannot be parsed",
            expected=EXAMPLE,
            fix="Equality is ==, conditions are joined by 'and', 'or' and 'not', text stands in quotes, names of "
            "columns with spaces in backticks.",
        ) from error
    reading = _Reading(subject, columns, {name: column for column, name in quoted.items()}, dates)
    try:
        reading.check(tree)
    except RecursionError as error:
        raise reading.refused("a condition that is nested too deeply") from error
    return RowFilter(text, tree, reading.used, dates)


@dataclass
class _Reading:
    """Looks at every node."""

    subject: str
    columns: Sequence[str]
    quoted: dict[str, str]
    dates: tuple[DatePart, ...]
    used: dict[str, str] = field(default_factory=dict)

    def check(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
            if isinstance(node.op, ast.Invert):
                raise self.refused("'~'", "Write not (...).")
        elif isinstance(node, ast.Compare):
            parts = self._of_comparison(node)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
                raise self.refused("& or |", "Write 'and' or 'or', which bind less than comparisons.")
            if type(node.op) not in ARITHMETIC:
                raise self.refused(f"the operator {type(node.op).__name__}")
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call):
            parts = self._of_call(node)
        elif isinstance(node, ast.Name):
            self._column(node.id)
            return
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return
        else:
            raise self.refused(f"something that is no condition ({type(node).__name__})")
        for part in parts:
            self.check(part)

    def _of_comparison(self, node: ast.Compare) -> list[ast.expr]:
        parts = [node.left]
        for kind, other in zip(node.ops, node.comparators, strict=True):
            if isinstance(kind, ast.In | ast.NotIn):
                is_list = isinstance(other, ast.List | ast.Tuple | ast.Set) and all(
                    isinstance(item, ast.Constant) and isinstance(item.value, int | float | str) for item in other.elts
                )
                if not is_list or len(node.ops) > 1:
                    raise self.refused("'in' without a list of values", "Write carrier in ['AA', 'UA'].")
            elif type(kind) not in COMPARISONS:
                raise self.refused(f"the comparison {type(kind).__name__}", "Write == or !=.")
            else:
                parts.append(other)
        return parts

    def _of_call(self, node: ast.Call) -> list[ast.expr]:
        called = node.func
        is_numpy = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "np"
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "something")
        if not (is_numpy and name in NUMPY_FUNCTIONS) or node.keywords or len(node.args) > NUMPY_FUNCTIONS[name]:
            raise self.refused(f"a call of {name}", "Functions are np.log, np.abs and others of NumPy, and year(date).")
        if not node.args:
            raise self.refused(f"np.{name}() without a column")
        return node.args

    def _column(self, name: str) -> None:
        column = self.quoted.get(name, name)
        source = {part.name: part.source for part in self.dates}.get(column, column)
        if source not in self.columns:
            close = list(close_to(source, self.columns))
            raise InputError(
                self.subject,
                got=f"{source!r}, which is no column of the table",
                expected="columns of the table, numbers, and text in quotes",
                fix=f"Did you mean {' or '.join(map(repr, close))}?" if close else "Text stands in quotes.",
            )
        self.used[name] = column

    def refused(self, what: str, fix: str = "Anything else goes into a column of the table first.") -> InputError:
        return InputError(self.subject, got=what, expected=EXAMPLE, fix=fix)


@dataclass
class _Evaluation:
    """Walks through a tree that was found harmless."""

    text: str
    values: dict[str, Any]
    names: dict[str, str]

    def of(self, node: Any) -> Any:
        if isinstance(node, ast.BoolOp):
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*(self._truth(part) for part in node.values)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._truth(node.operand)
        return self._comparison(node) if isinstance(node, ast.Compare) else self._value(node)

    def _value(self, node: Any) -> Any:
        if isinstance(node, ast.UnaryOp):
            return self._number(node.operand) * (-1.0 if isinstance(node.op, ast.USub) else 1.0)
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](self._number(node.left), self._number(node.right))
        if isinstance(node, ast.Call):
            return getattr(np, node.func.attr)(*(self._number(part) for part in node.args))  # type: ignore[attr-defined]
        return self.values[node.id] if isinstance(node, ast.Name) else node.value

    def _truth(self, node: Any) -> np.ndarray:
        found = np.asarray(self.of(node))
        if found.dtype != bool:
            raise self._refused("a number or text joined by and, or, not", "Compare it with something.")
        return found

    def _number(self, node: Any) -> Any:
        found = self.of(node)
        if _kind(found) != "numbers":
            raise self._refused("arithmetic with text or dates", "Use year(date), days(date) and the like for dates.")
        return np.asarray(found, float) if np.ndim(found) else float(found)

    def _comparison(self, node: ast.Compare) -> np.ndarray:
        left, result = self.of(node.left), np.asarray(True)
        for kind, other in zip(node.ops, node.comparators, strict=True):
            if isinstance(kind, ast.In | ast.NotIn):
                values = [item.value for item in other.elts]  # type: ignore[attr-defined]
                holds = np.zeros(np.shape(left), bool)
                for value in values:
                    holds = holds | self._compared(operator.eq, left, value)
                result = result & (holds if isinstance(kind, ast.In) else ~holds)
                continue
            right = self.of(other)
            result = result & self._compared(COMPARISONS[type(kind)], left, right)
            left = right
        return result

    def _compared(self, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> np.ndarray:
        kinds = {_kind(left), _kind(right)}
        if kinds == {"dates", "text"}:
            left, right = (self._date(value) if _kind(value) == "text" else value for value in (left, right))
        elif len(kinds) == 2:
            raise self._refused(
                f"{_kind(left)} compared with {_kind(right)}",
                "Text stands in quotes, numbers do not; turn a column of numbers that was read as text into numbers.",
            )
        return np.asarray(compare(left, right), bool)

    def _date(self, value: Any) -> Any:
        try:
            return np.datetime64(pd.Timestamp(value))
        except (ValueError, TypeError) as error:
            raise self._refused(f"{value!r} compared with dates", "Write dates as '2024-03-01'.") from error

    def _refused(self, what: str, fix: str) -> InputError:
        return InputError(subject_of_filter(self.text), got=what, expected=EXAMPLE, fix=fix)


def _kind(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind == "M":
        return "dates"
    return "text" if array.dtype.kind in "OUS" else "numbers"


def _values(column: pd.Series) -> np.ndarray:
    """A column as numbers, booleans, text or dates."""
    dtype = column.dtype
    if getattr(dtype, "tz", None) is not None:
        column = column.dt.tz_localize(None)
    if isinstance(dtype, pd.CategoricalDtype):
        column = column.astype(object)
    found = pd.api.types.infer_dtype(column, skipna=True)
    if found == "boolean":
        return column.to_numpy(bool, na_value=False)
    if found in ("integer", "floating", "mixed-integer-float", "decimal"):
        return column.to_numpy(float, na_value=np.nan)
    if found in ("date", "datetime", "datetime64"):
        return pd.to_datetime(column).to_numpy("datetime64[ns]")
    return column.astype(object).fillna("").to_numpy(object)


@dataclass(frozen=True, eq=False)
class Choice:
    """Rows that a filter lets pass and whose weight is not zero."""

    where: RowFilter | None = None
    weights: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.where.columns if self.where is not None else ()

    def places(self, frame: pd.DataFrame) -> tuple[np.ndarray | None, int]:
        """Of the rows of a run, None for all of them; and how many were left out for their weight."""
        chosen = None if self.where is None else self.where.holds(frame)
        without_weight = 0
        if self.weights is not None and pd.api.types.is_numeric_dtype(frame[self.weights].dtype):
            is_zero = (frame[self.weights] == 0).to_numpy(bool, na_value=False)
            without_weight = int(np.count_nonzero(is_zero if chosen is None else is_zero & chosen))
            if without_weight:
                chosen = ~is_zero if chosen is None else chosen & ~is_zero
        return (None if chosen is None or chosen.all() else np.flatnonzero(chosen)), without_weight


ALL = Choice()
