"""What is written otherwise in R or in lme4: the same in the words of a formula here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coreset_mcmc.core.errors import InputError

QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
ALL_COLUMNS = re.compile(r"(?<![\w.)\]`])\.(?![\w.])")
MOST_NAMES = 12
INSTEAD = {
    **{name: f"np.{name}(x)" for name in ("abs", "cos", "exp", "expm1", "floor", "log", "log10", "log1p", "log2")},
    **{name: f"np.{name}(x)" for name in ("round", "sign", "sin", "sqrt", "tan", "tanh")},
    **{"ceiling": "np.ceil(x)", "ifelse": "np.where(x > 0, 1, 0)", "pmin": "np.minimum(x, 1)"},
    **{"pmax": "np.maximum(x, 0)", "factor": "C(x)", "as.factor": "C(x)", "as_factor": "C(x)", "Q": "`x`"},
    **{"cut": "{x > 3}, or a column of its own", "relevel": 'C(g, Treatment("b"))', "ns": "bs(x, df=5)"},
    **{"s": "bs(x, df=5)", "spline": "bs(x, df=5)", "cr": "bs(x, df=5)", "as.numeric": "a column of numbers"},
    **{"np.log1": "np.log1p(x)", "math.log": "np.log(x)", "numpy.log": "np.log(x)", "ln": "np.log(x)"},
    **{"weekday": "dayofweek(date)", "wday": "dayofweek(date)", "as.integer": "a column of numbers"},
    **{"Surv": "censored(time, {status == 0}) ~ ... with the family weibull or exponential"},
    **{"cbind": "p(successes, trials) ~ ... with the family binomial", "weights": "weights=, or --weights"},
}
"""How calls of other languages are written."""


def check_language(text: str, columns: Sequence[str], subject: str) -> None:
    """Refuse what only another language has, and say how it is written."""
    bare = QUOTED.sub(lambda found: "q" * len(found[0]), text)
    if "^" in bare:
        raise InputError(
            subject,
            got="'^'",
            expected="** for powers",
            fix="Write {x ** 2} for the square of a column, (a + b) ** 2 for interactions.",
        )
    if "||" in bare:
        raise InputError(
            subject,
            got="'||'",
            expected="one bar",
            fix="Write (x|g): the effects of a group are independent of each other anyway, as in Bambi.",
        )
    left, _, right = bare.partition("~")
    if ALL_COLUMNS.search(right):
        names = [f"`{name}`" if not name.isidentifier() else name for name in columns if name != left.strip()]
        shown = " + ".join(names[:MOST_NAMES]) + (" + ..." if len(names) > MOST_NAMES else "")
        raise InputError(
            subject,
            got="'.' for all other columns",
            expected="columns by their names",
            fix=f"Write them out, without those that only name a row: '{text.partition('~')[0].strip()} ~ {shown}'.",
        )


def in_our_words(name: str) -> str | None:
    """How a call of another language is written here."""
    return INSTEAD.get(name)
