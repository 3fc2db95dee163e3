"""What a formula may say, checked before anything in it is evaluated.

``formulae`` evaluates calls in a formula as Python: any name of the environment, any attribute of it. A formula may
come from someone else's configuration file, so it is parsed first, by the scanner and the parser of ``formulae``, which
evaluate nothing, and every node of the tree is looked at: names are columns, calls are those of :data:`CALLS` or
``np.<function>`` of :data:`NUMPY_FUNCTIONS`. The environment that ``formulae`` gets holds nothing else either.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from coreset_mcmc.errors import InputError, require

CALLS = ("B", "C", "I", "S", "T", "binary", "bs", "center", "offset", "poly", "scale", "standardize")
"""Functions of ``formulae`` that a formula may call."""
CATEGORICAL_CALLS = ("B", "C", "S", "T", "binary")
"""Calls whose argument keeps the type of its column, because its values become levels."""
ENCODINGS = ("Sum", "Treatment")
"""What may stand as the second argument of C, with or without a call."""
NUMPY_FUNCTIONS = (
    *("abs", "arccos", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "ceil", "clip", "cos", "cosh"),
    *("deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "hypot", "log", "log10", "log1p", "log2"),
    *("logaddexp", "maximum", "minimum", "power", "rad2deg", "radians", "reciprocal", "round", "sign", "sin", "sinh"),
    *("sqrt", "square", "tan", "tanh", "where"),
)
"""Functions of NumPy, each of which works on numbers row by row."""
LARGEST_SETTING = 1000
"""No whole number in a formula that sets a degree, a number of columns or a power needs to be larger."""
LONGEST = 10_000
"""Characters of the longest formula that is read."""


@dataclass(frozen=True)
class Formula:
    """A formula that was found harmless."""

    text: str
    right: str
    """What stands to the right of the tilde."""
    response: str
    """What stands to the left of it."""
    response_column: str | None
    """The response, if it is a column as it stands; None if it is an expression."""
    success: str | None
    """The level in ``y['level']``."""
    columns: tuple[str, ...]
    """Columns of the table that it uses, in order of appearance."""
    categorical: frozenset[str]
    """Columns whose values are used as levels by C(x) and the like."""
    offsets: int
    """How many offsets it has."""


def environment() -> Any:
    """The names that a formula can reach beside its columns: functions of NumPy that were chosen."""
    from formulae.environment import Environment

    return Environment([{"np": SimpleNamespace(**{name: getattr(np, name) for name in NUMPY_FUNCTIONS})}])


def read_formula(text: Any, columns: Iterable[str]) -> Formula:
    """Parse and check a formula for a table with ``columns``."""
    require(
        isinstance(text, str) and bool(text.strip()),
        "formula",
        got=repr(text),
        expected="text such as 'y ~ x'",
        fix="Name the response, a tilde and the predictors.",
    )
    require(
        len(text) <= LONGEST,
        "formula",
        got=f"{len(text)} characters",
        expected=f"at most {LONGEST}",
        fix="Name fewer columns, or pass a design matrix to a model of your own.",
    )
    tree = _parse(text)
    from formulae import expr

    is_whole = isinstance(tree, expr.Binary) and tree.operator.kind == "TILDE"
    require(
        is_whole and text.count("~") == 1,
        f"formula {text!r}",
        got="no response",
        expected="'response ~ predictors'",
        fix="Write the column to explain before a tilde, e.g. 'y ~ x'.",
    )
    check = _Check(text, [str(name) for name in columns])
    check.response(tree.left)
    check.visit(tree.right, inside_call=False)
    left, right = (part.strip() for part in text.split("~"))
    plain = _column_of(tree.left)
    success = tree.left.level.value if isinstance(tree.left, expr.Variable) and tree.left.level is not None else None
    return Formula(
        text,
        right,
        left,
        plain,
        success,
        tuple(dict.fromkeys(check.used)),
        frozenset(check.categorical),
        check.offsets,
    )


def _column_of(node: Any) -> str | None:
    from formulae import expr

    if isinstance(node, expr.Variable):
        return str(node.name.lexeme)
    return str(node.expression.lexeme[1:-1]) if isinstance(node, expr.QuotedName) else None


def _parse(text: str) -> Any:
    from formulae.parser import ParseError, Parser
    from formulae.scanner import ScanError, Scanner

    require(
        text.count("`") % 2 == 0,
        f"formula {text!r}",
        got="a backtick without its partner",
        expected="backticks in pairs around a column name",
        fix="Write `column name` with a backtick on either side.",
    )
    try:
        tokens = Scanner(text).scan(add_intercept=False)
        parser = Parser(tokens)
        tree = parser.parse()
    except (ScanError, ParseError, IndexError, AttributeError, RecursionError) as error:
        reason = "expressions nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(
            f"formula {text!r}",
            got=f"text that cannot be parsed ({reason})",
            expected="a formula such as 'y ~ x1 + x2 * x3'",
            fix="Check parentheses and operators; names with other characters than letters, digits, dots and "
            "underscores, or that start with an underscore, go between backticks.",
        ) from error
    if not parser.at_end():
        raise InputError(
            f"formula {text!r}",
            got=f"something after its end, from {parser.peek().lexeme!r}",
            expected="one formula",
            fix="Join terms by +; arithmetic goes into {...} or I(...). Lists, lambdas, % and // cannot be used.",
        )
    return tree


class _Check:
    """Walks through the tree, and remembers what is used."""

    def __init__(self, text: str, columns: list[str]) -> None:
        self.text, self.columns = text, columns
        self.used: list[str] = []
        self.categorical: set[str] = set()
        self.offsets = 0

    def response(self, node: Any) -> None:
        from formulae import expr

        require(
            isinstance(node, expr.Variable | expr.QuotedName | expr.Call),
            f"formula {self.text!r}",
            got="a response that is a sum, a product or a number",
            expected="one column, or one call such as np.log(y) or {y / 2}",
            fix="Put arithmetic into braces: '{a + b} ~ x'.",
        )
        if isinstance(node, expr.Variable) and node.level is not None:
            self.column(node.name.lexeme)
            return
        self.visit(node, inside_call=False)
        require(
            self.offsets == 0,
            f"formula {self.text!r}",
            got="offset(...) as the response",
            expected="a response",
            fix="An offset belongs among the predictors.",
        )

    def visit(self, node: Any, *, inside_call: bool, as_levels: bool = False) -> None:
        from formulae import expr

        if isinstance(node, expr.Grouping):
            self.visit(node.expression, inside_call=inside_call, as_levels=as_levels)
        elif isinstance(node, expr.Binary):
            self.operator(node, inside_call=inside_call, as_levels=as_levels)
        elif isinstance(node, expr.Unary):
            self.visit(node.right, inside_call=inside_call, as_levels=as_levels)
        elif isinstance(node, expr.Call):
            self.call(node)
        elif isinstance(node, expr.Variable):
            require(
                node.level is None,
                f"formula {self.text!r}",
                got=f"{node.name.lexeme}[{getattr(node.level, 'value', '')!r}] among the predictors",
                expected="square brackets after the response only",
                fix="Compare instead: {x == 'level'}.",
            )
            self.column(node.name.lexeme, as_levels=as_levels)
        elif isinstance(node, expr.QuotedName):
            self.column(node.expression.lexeme[1:-1], as_levels=as_levels)
        elif isinstance(node, expr.Literal):
            self.literal(node, inside_call=inside_call)
        else:
            raise self.refused(f"{type(node).__name__.lower()} outside a call", "terms joined by + - * : / **")

    def operator(self, node: Any, *, inside_call: bool, as_levels: bool) -> None:
        kind = node.operator.kind
        if kind == "PIPE":
            raise InputError(
                f"formula {self.text!r}",
                got="a group-specific term (...|...)",
                expected="common terms only",
                fix="Build it with Bambi and pass it on: cm.fit(cm.from_bambi(bmb.Model(formula, frame))).",
            )
        if not inside_call and kind == "STAR_STAR":
            power = getattr(node.right, "value", None)
            if not (isinstance(power, int) and not isinstance(power, bool) and 1 <= power <= 10):
                raise self.refused("a power of terms that is no whole number from 1 to 10", "(a + b) ** 2")
            self.visit(node.left, inside_call=False)
            return
        if not inside_call and kind not in ("PLUS", "MINUS", "STAR", "SLASH", "COLON"):
            raise self.refused(f"the operator {node.operator.lexeme!r} between terms", "comparisons in braces {...}")
        if inside_call and kind in ("COLON", "TILDE"):
            raise self.refused(f"the operator {node.operator.lexeme!r} inside a call", "arithmetic inside calls")
        for side in (node.left, node.right):
            self.visit(side, inside_call=inside_call, as_levels=as_levels)

    def literal(self, node: Any, *, inside_call: bool) -> None:
        value = node.value
        if inside_call:
            return
        if isinstance(value, bool) or value not in (0, 1):
            raise self.refused(f"the constant {value!r} as a term", "columns, calls, 0 or 1")

    def call(self, node: Any) -> None:
        from formulae import expr

        name = getattr(getattr(node.callee, "name", None), "lexeme", None)
        if name is None or not isinstance(node.callee, expr.Variable) or node.callee.level is not None:
            raise self.refused("a call of something that is no name", self.allowed())
        parts = name.split(".")
        is_numpy = len(parts) == 2 and parts[0] == "np" and parts[1] in NUMPY_FUNCTIONS
        if not (is_numpy or name in CALLS):
            raise self.refused(f"a call of {name}", self.allowed())
        self.offsets += name == "offset"
        as_levels = name in CATEGORICAL_CALLS
        for place, argument in enumerate(node.args):
            is_setting = isinstance(argument, expr.Assign)
            value = argument.value if is_setting else argument
            if name == "C" and (place == 1 or is_setting) and self.encoding(value):
                continue
            if isinstance(value, expr.Literal) and isinstance(value.value, int) and name in ("bs", "poly"):
                self.setting(name, value.value)
            self.visit(value, inside_call=True, as_levels=as_levels and not is_setting)

    def encoding(self, node: Any) -> bool:
        """Whether ``node`` is Treatment, Sum, Treatment("level") or Sum("level")."""
        from formulae import expr

        callee, arguments = (node.callee, node.args) if isinstance(node, expr.Call) else (node, [])
        values = [item.value if isinstance(item, expr.Assign) else item for item in arguments]
        is_known = isinstance(callee, expr.Variable) and callee.name.lexeme in ENCODINGS
        return is_known and all(isinstance(value, expr.Literal) for value in values)

    def setting(self, name: str, value: int) -> None:
        if value > LARGEST_SETTING:
            raise self.refused(f"{value} as an argument of {name}", f"at most {LARGEST_SETTING}")

    def column(self, name: str, *, as_levels: bool = False) -> None:
        if name not in self.columns:
            raise InputError(
                f"formula {self.text!r}",
                got=f"{name!r}, which is no column of the table",
                expected=f"columns among {_some(self.columns)}",
                fix=_suggestion(name, self.columns),
            )
        self.used.append(name)
        if as_levels:
            self.categorical.add(name)

    def refused(self, what: str, expected: str) -> InputError:
        return InputError(
            f"formula {self.text!r}",
            got=what,
            expected=expected,
            fix="Anything else goes into a column of the table first.",
        )

    @staticmethod
    def allowed() -> str:
        return f"calls of {', '.join(CALLS)} or np.<function> such as np.log, np.exp and np.sqrt"


def _some(names: list[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return f"[{shown}{', ...' if len(names) > most else ''}]"


def _suggestion(name: str, columns: list[str]) -> str:
    return (
        f"Did you mean {' or '.join(map(repr, close))}?"
        if (close := list(close_to(name, columns)))
        else ("Check the spelling; names with spaces go between backticks.")
    )


def close_to(name: str, known: Iterable[str]) -> Iterator[str]:
    """Known names that look or sound like ``name``."""
    by_lower = {item.lower(): item for item in known}
    for match in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6):
        yield by_lower[match]
