"""What a formula may say, checked before anything in it is evaluated.

``formulae`` evaluates calls in a formula as Python: any name of the environment, any attribute of it. A formula may
come from someone else's configuration file, so it is parsed first, by the scanner and the parser of ``formulae``, which
evaluate nothing, and every node of the tree is looked at (``formula_check.py``): names are columns, calls are those of
a list. The environment that ``formulae`` gets holds nothing else either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.dates import DatePart, sources_of, without_calls
from coreset_mcmc.tables.families.family import TRIALS
from coreset_mcmc.tables.formula_check import MOST_TERMS, FormulaCheck, misplaced_bar, subject_of
from coreset_mcmc.tables.other_languages import check_language
from coreset_mcmc.tables.response_call import ResponseParts, response_parts

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
    predictors: tuple[str, ...]
    """Those that stand to the right of the tilde."""
    categorical: frozenset[str]
    """Columns whose values are used as levels by C(x) and the like."""
    stateful: frozenset[str] = frozenset()
    """Calls in it whose value for one row depends on all rows, such as scale."""
    groups: frozenset[str] = frozenset()
    """Columns that name the groups of terms such as (1|g)."""
    parts: ResponseParts = field(default_factory=ResponseParts)
    """The response, taken apart."""
    dates: tuple[DatePart, ...] = field(default=())
    """Columns that follow from dates."""
    of_trials: tuple[str, ...] = ()
    """Columns that the number of trials follows from."""
    numeric: frozenset[str] = frozenset()
    """Columns that are used otherwise than as levels or groups."""

    @property
    def to_predict(self) -> tuple[str, ...]:
        """Columns that new rows need: predictors, and the number of trials."""
        return (*self.predictors, *self.of_trials)

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns as the table has them."""
        return tuple(sources_of(self.columns, self.dates))


def read_formula(text: Any, columns: Iterable[str]) -> Formula:
    """Parse and check a formula for a table with ``columns``."""
    _check_text(text)
    names = [str(name) for name in columns]
    subject = subject_of(text)
    check_language(text, names, subject)
    whole, dates = without_calls(text)
    left, _, right = whole.partition("~")
    parts = response_parts(left, subject) if whole.count("~") == 1 else ResponseParts(left)
    tree = _parse(f"{parts.y} ~ {right}" if parts.role or parts.order else whole, subject)
    from formulae import expr

    is_whole = isinstance(tree, expr.Binary) and tree.operator.kind == "TILDE"
    require(
        is_whole and text.count("~") == 1,
        subject,
        got="no response",
        expected="'response ~ predictors'",
        fix="Write the column to explain before a tilde, e.g. 'y ~ x'.",
    )
    check = FormulaCheck(text, names, dates)
    try:
        check.response(tree.left)
        of_trials = len(check.used)
        if parts.role:
            check.inside(_parse(parts.other, subject))
        of_response, check.used = check.used, []
        num_terms = check.visit(tree.right)
    except RecursionError as error:
        raise check.refused("more terms than can be read", f"at most {MOST_TERMS} terms") from error
    if num_terms > MOST_TERMS:
        raise check.refused(f"{num_terms} terms", f"at most {MOST_TERMS} terms")
    _check_sides(of_response, check.used, subject)
    success = tree.left.level.value if isinstance(tree.left, expr.Variable) and tree.left.level is not None else None
    return Formula(
        text,
        right.strip(),
        parts.y,
        _column_of(tree.left),
        success,
        tuple(dict.fromkeys([*of_response, *check.used])),
        tuple(dict.fromkeys(check.used)),
        frozenset(check.categorical),
        frozenset(check.stateful),
        frozenset(check.groups),
        parts,
        dates,
        tuple(of_response[of_trials:]) if parts.role == TRIALS else (),
        frozenset(check.numeric),
    )


def _check_text(text: Any) -> None:
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


def _check_sides(of_response: list[str], of_predictors: list[str], subject: str) -> None:
    both = sorted({*of_response} & {*of_predictors})
    require(
        not both,
        subject,
        got=f"{', '.join(both)} on both sides of the tilde",
        expected="a response that is not among its predictors",
        fix="Leave it out on the right.",
    )


def _column_of(node: Any) -> str | None:
    from formulae import expr

    if isinstance(node, expr.Variable):
        return str(node.name.lexeme)
    return str(node.expression.lexeme[1:-1]) if isinstance(node, expr.QuotedName) else None


def _parse(text: str, subject: str) -> Any:
    from formulae.parser import ParseError, Parser
    from formulae.scanner import ScanError, Scanner

    require(
        text.count("`") % 2 == 0,
        subject,
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
            subject,
            got=f"text that cannot be parsed ({reason})",
            expected="a formula such as 'y ~ x1 + x2 * x3'",
            fix="Check parentheses and operators; names with other characters than letters, digits, dots and "
            "underscores, or that start with an underscore, go between backticks.",
        ) from error
    if not parser.at_end() and parser.peek().lexeme == "|":
        raise misplaced_bar(subject)
    if not parser.at_end():
        raise InputError(
            subject,
            got=f"something after its end, from {parser.peek().lexeme!r}",
            expected="one formula",
            fix="Join terms by +; arithmetic goes into {...} or I(...). Lists, lambdas, % and // cannot be used.",
        )
    return tree
