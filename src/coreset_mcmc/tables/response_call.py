"""Responses of more than a column: ``p(successes, trials)``, ``censored(time, status)``, ``ordered(y, "low", "high")``.

They are taken apart as text before the formula is parsed, so that what is left is a formula of one response, and what
was taken off are texts that are parsed and checked like every other part of it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.families.family import CENSORED, TRIALS

ORDER = "ordered"
ROLES = {"p": TRIALS, "prop": TRIALS, "proportion": TRIALS, "censored": CENSORED, "ordered": ORDER}
"""What the second argument of a call is."""
FORMS = {TRIALS: "p(successes, trials)", CENSORED: "censored(time, status)", ORDER: 'ordered(y, "low", "mid", "high")'}
CALL = re.compile(rf"\s*({'|'.join(ROLES)})\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True)
class ResponseParts:
    """What stands to the left of the tilde."""

    y: str = ""
    role: str = ""
    other: str = ""
    """The number of trials, or the status of censoring, as text."""
    order: tuple[str, ...] = ()
    """Levels as the user has ordered them."""


def response_parts(left: str, subject: str) -> ResponseParts:
    """Take a response apart."""
    found = CALL.fullmatch(left)
    if found is None:
        return ResponseParts(left.strip())
    role, arguments = ROLES[found[1]], _arguments(found[2])
    if role == ORDER:
        return _ordered(arguments, subject)
    require(
        len(arguments) == 2 and all(arguments),
        subject,
        got=f"{found[1]}(...) with {len(arguments)} argument{'s' * (len(arguments) != 1)}",
        expected=FORMS[role],
        fix="Intervals and left-censored times are not known here; Bambi may (cm.from_bambi)."
        if role == CENSORED
        else "Name the column of successes, and the column of trials or a number.",
    )
    return ResponseParts(arguments[0], role, arguments[1])


def _ordered(arguments: list[str], subject: str) -> ResponseParts:
    levels = [_text(argument) for argument in arguments[1:]]
    is_right = len(levels) >= 2 and None not in levels and len(set(levels)) == len(levels)
    if not is_right:
        raise InputError(
            subject,
            got=f"ordered({', '.join(arguments)})",
            expected=FORMS[ORDER],
            fix="Name the column, then all its levels from low to high, each once and in quotes.",
        )
    return ResponseParts(arguments[0], order=tuple(str(level) for level in levels))


def _text(argument: str) -> str | None:
    try:
        value = ast.literal_eval(argument)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None


def _arguments(text: str) -> list[str]:
    """Cut at commas outside of brackets, quotes and backticks."""
    parts, depth, quote, start = [], 0, "", 0
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]
