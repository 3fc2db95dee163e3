"""Every node of a formula, looked at before anything is evaluated: what may be called, and what may be named."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.dates import DATE_CALLS, DatePart
from coreset_mcmc.tables.other_languages import in_our_words

CALLS = ("B", "C", "I", "S", "T", "binary", "bs", "center", "offset", "poly", "scale", "standardize")
"""Functions of ``formulae`` that a formula may call."""
STATEFUL_CALLS = ("bs", "center", "poly", "scale", "standardize")
"""Calls whose value for one row depends on all rows."""
CATEGORICAL_CALLS = ("B", "C", "S", "T", "binary")
"""Calls whose argument keeps the type of its column, because its values become levels."""
ENCODINGS = ("Sum", "Treatment")
"""What may stand as the second argument of C, with or without a call."""
NUMPY_FUNCTIONS = {
    **dict.fromkeys(("abs", "arccos", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos", "cosh"), 1),
    **dict.fromkeys(("deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "log", "log10", "log1p"), 1),
    **dict.fromkeys(("log2", "rad2deg", "radians", "reciprocal", "sign", "sin", "sinh", "sqrt", "square"), 1),
    **dict.fromkeys(("tan", "tanh"), 1),
    **dict.fromkeys(("arctan2", "hypot", "logaddexp", "maximum", "minimum", "power", "round"), 2),
    **dict.fromkeys(("clip", "where"), 3),
}
"""Functions of NumPy that work row by row, and how many arguments they may get; the next one would be written to."""
LARGEST_SETTING = 1000
"""No degree and no number of columns in a formula needs to be larger."""
MOST_TERMS = 300
"""Terms that a formula may have, products and powers multiplied out; the parser goes a level deeper for each."""


def environment() -> Any:
    """The names that a formula can reach beside its columns: functions of NumPy that were chosen."""
    from formulae.environment import Environment

    return Environment([{"np": SimpleNamespace(**{name: getattr(np, name) for name in NUMPY_FUNCTIONS})}])


def subject_of(text: str, most: int = 80) -> str:
    """How a formula is called in messages."""
    return f"formula {text if len(text) <= most else text[:most] + '...'!r}"


def misplaced_bar(subject: str) -> InputError:
    """The error about a group term that is none."""
    return InputError(
        subject,
        got="a bar outside of parentheses, or one inside of another group term",
        expected="group terms such as (1|g) or (x|g), joined by +",
        fix="Write y ~ x + (1|g) + (1|h).",
    )


class FormulaCheck:
    """Walks through the tree, and remembers what is used."""

    def __init__(self, text: str, columns: list[str], dates: tuple[DatePart, ...] = ()) -> None:
        self.subject, self.columns = subject_of(text), columns
        self.dates = {part.name: part for part in dates}
        self.used: list[str] = []
        self.groups: set[str] = set()
        self.is_in_group = False
        self.numeric: set[str] = set()
        self.categorical: set[str] = set()
        self.stateful: set[str] = set()

    def response(self, node: Any) -> None:
        from formulae import expr

        require(
            isinstance(node, expr.Variable | expr.QuotedName | expr.Call),
            self.subject,
            got="a response that is a sum, a product or a number",
            expected="one column, or one call such as np.log(y) or {y / 2}",
            fix="Put arithmetic into braces: '{a + b} ~ x'.",
        )
        if isinstance(node, expr.Variable):
            self.column(node.name.lexeme)
        elif getattr(getattr(node, "callee", None), "name", None) and node.callee.name.lexeme == "offset":
            raise self.refused("offset(...) as the response", "an offset among the predictors")
        else:
            self.visit(node)

    def visit(self, node: Any) -> int:
        """Look at a part outside calls; how many terms it can become."""
        from formulae import expr

        if isinstance(node, expr.Grouping):
            inner = node.expression
            is_group = isinstance(inner, expr.Binary) and inner.operator.kind == "PIPE"
            return self.group_term(inner) if is_group else self.visit(inner)
        if isinstance(node, expr.Binary):
            return self.operator(node)
        if isinstance(node, expr.Unary):
            return self.visit(node.right)
        if isinstance(node, expr.Literal):
            if isinstance(node.value, bool) or node.value not in (0, 1):
                raise self.refused(f"the constant {node.value!r} as a term", "columns, calls, 0 or 1")
        elif isinstance(node, expr.Call):
            self.call(node)
        elif not self.name(node):
            raise self.refused("an assignment", "terms joined by + - * : / **")
        return 1

    def operator(self, node: Any) -> int:
        kind = node.operator.kind
        if kind == "PIPE":
            raise self.bar()
        left = self.visit(node.left)
        if kind == "STAR_STAR":
            return self.power(left, getattr(node.right, "value", None))
        right = self.visit(node.right)
        counts = {
            "PLUS": left + right,
            "MINUS": left,
            "STAR": left + right + left * right,
            "SLASH": left + left * right,
            "COLON": left * right,
        }
        if kind not in counts:
            raise self.refused(f"the operator {node.operator.lexeme!r} between terms", "comparisons in braces {...}")
        return counts[kind]

    def group_term(self, node: Any) -> int:
        """(terms | groups), where groups are a column, or columns joined by : or /."""
        if self.is_in_group:
            raise self.bar()
        self.is_in_group = True
        count = self.visit(node.left)
        self.is_in_group = False
        used, self.used = self.used, []
        self.factor(node.right)
        self.groups |= {*self.used}
        self.used = [*used, *self.used]
        return count

    def factor(self, node: Any) -> None:
        from formulae import expr

        if isinstance(node, expr.Grouping):
            self.factor(node.expression)
        elif isinstance(node, expr.Binary) and node.operator.kind in ("COLON", "SLASH"):
            self.factor(node.left)
            self.factor(node.right)
        elif not self.name(node, as_levels=True):
            raise self.refused(
                "groups that are not a column", "a column after the bar, (1|g), or columns as in (1|g:h) and (1|g/h)"
            )

    def power(self, num_terms: int, power: Any) -> int:
        if type(power) is not int or not 1 <= power <= 10:
            raise self.refused("a power of terms that is no whole number from 1 to 10", "(a + b) ** 2")
        if num_terms == 1 and power > 1:
            raise self.refused("a power of a single term", "{x ** 2} for the square of a column")
        return sum(math.comb(num_terms, order) for order in range(1, power + 1))

    def inside(self, node: Any, *, as_levels: bool = False) -> None:
        """Look at an argument of a call, which is evaluated as Python."""
        from formulae import expr

        if isinstance(node, expr.Grouping):
            self.inside(node.expression)
        elif isinstance(node, expr.Binary):
            if node.operator.kind in ("COLON", "TILDE", "PIPE"):
                raise self.refused(f"the operator {node.operator.lexeme!r} inside a call", "arithmetic inside calls")
            self.inside(node.left)
            self.inside(node.right)
        elif isinstance(node, expr.Unary):
            self.inside(node.right)
        elif isinstance(node, expr.Call):
            self.call(node)
        elif not (isinstance(node, expr.Literal) or self.name(node, as_levels=as_levels)):
            raise self.refused("an assignment inside an expression", "arithmetic inside calls")

    def name(self, node: Any, *, as_levels: bool = False) -> bool:
        """Whether ``node`` is a name; it has to be that of a column then."""
        from formulae import expr

        if isinstance(node, expr.QuotedName):
            self.column(node.expression.lexeme[1:-1], as_levels=as_levels)
            return True
        if not isinstance(node, expr.Variable):
            return False
        if node.level is not None:
            raise self.refused(f"{node.name.lexeme}[...] among the predictors", "a comparison: {x == 'level'}")
        self.column(node.name.lexeme, as_levels=as_levels)
        return True

    def call(self, node: Any) -> None:
        from formulae import expr

        name = getattr(getattr(node.callee, "name", None), "lexeme", None)
        if name is None or not isinstance(node.callee, expr.Variable) or node.callee.level is not None:
            raise self.refused("a call of something that is no name", self.allowed())
        parts = name.split(".")
        is_numpy = len(parts) == 2 and parts[0] == "np" and parts[1] in NUMPY_FUNCTIONS
        if name in DATE_CALLS:
            raise self.refused(f"{name}(...) of something that is no column", f"{name}(column)")
        if not (is_numpy or name in CALLS):
            raise self.unknown_call(name)
        self.stateful |= {name} & {*STATEFUL_CALLS}
        if is_numpy and any(isinstance(argument, expr.Assign) for argument in node.args):
            raise self.refused(f"named arguments of {name}", "arguments by their place")
        if is_numpy and len(node.args) > NUMPY_FUNCTIONS[parts[1]]:
            raise self.refused(f"{len(node.args)} arguments of {name}", f"at most {NUMPY_FUNCTIONS[parts[1]]}")
        if name in CATEGORICAL_CALLS and not (node.args and isinstance(node.args[0], expr.Variable | expr.QuotedName)):
            raise self.refused(f"{name}(...) of an expression", f"{name}(column)")
        for place, argument in enumerate(node.args):
            value = argument.value if isinstance(argument, expr.Assign) else argument
            if name == "C" and place == 1 and self.encoding(value):
                continue
            if name in ("bs", "poly"):
                self.setting(name, getattr(value, "value", None))
            self.inside(value, as_levels=name in CATEGORICAL_CALLS and place == 0)

    def encoding(self, node: Any) -> bool:
        """Whether ``node`` is Treatment, Sum, Treatment("level") or Sum("level")."""
        from formulae import expr

        callee, arguments = (node.callee, node.args) if isinstance(node, expr.Call) else (node, [])
        values = [item.value if isinstance(item, expr.Assign) else item for item in arguments]
        is_known = isinstance(callee, expr.Variable) and callee.name.lexeme in ENCODINGS
        return is_known and all(isinstance(value, expr.Literal) for value in values)

    def setting(self, name: str, value: Any) -> None:
        if isinstance(value, int) and value > LARGEST_SETTING:
            raise self.refused(f"{value} as an argument of {name}", f"at most {LARGEST_SETTING}")

    def column(self, name: str, *, as_levels: bool = False) -> None:
        source = self.dates[name].source if name in self.dates else name
        if source not in self.columns:
            name = source
            raise InputError(
                self.subject,
                got=f"{name!r}, which is no column of the table",
                expected=f"columns among {_some(self.columns)}",
                fix=_suggestion(name, self.columns),
            )
        self.used.append(name)
        (self.categorical if as_levels else self.numeric).add(name)

    def bar(self) -> InputError:
        return misplaced_bar(self.subject)

    def unknown_call(self, name: str) -> InputError:
        ours = in_our_words(name)
        if ours is None:
            return self.refused(f"a call of {name}", self.allowed())
        return InputError(self.subject, got=f"a call of {name}", expected=self.allowed(), fix=f"Write {ours}.")

    def refused(self, what: str, expected: str) -> InputError:
        return InputError(
            self.subject,
            got=what,
            expected=expected,
            fix="Anything else goes into a column of the table first.",
        )

    @staticmethod
    def allowed() -> str:
        return f"calls of {', '.join((*CALLS, *DATE_CALLS))} or np.<function> such as np.log, np.exp and np.sqrt"


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
