"""Numbers and values as short, safe text.

Names and values come from data files. Characters that no page can hold (controls, halves of surrogate pairs) or that
reach beyond their own text (changes of direction) become the replacement character; escaping for HTML is left to the
template and for SVG to the writer of XML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from coreset_mcmc.core import digits

MOST_CHARACTERS = 300
MOST_ITEMS = 20
NOTHING = "\u2013"
"""A dash for a value that is not there."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: object, longest: int = MOST_CHARACTERS) -> str:
    """Text on one line without characters that break a page, cut off at ``longest``."""
    line = _CONTROLS.sub("\ufffd", " ".join(str(text).split()))
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def label(text: object, longest: int) -> str:
    """A name for a figure: cut in the middle, because names that begin alike often differ at their ends."""
    line = clean(text)
    if len(line) <= longest:
        return line
    end = longest // 2
    return f"{line[: longest - end - 1]}…{line[len(line) - end :]}"


def number(value: Any, digits: int = 3) -> str:
    """A number with a few significant digits and a separator of thousands; a dash for what is not there."""
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return NOTHING
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size != 0.0 and not 1e-4 <= size < 1e9:
        return f"{value:.{digits - 1}e}"
    decimals = max(digits - 1 - (math.floor(math.log10(size)) if size else 0), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def beside(value: float, spread: float) -> str:
    """A number with as many decimals as two digits of its spread have."""
    if not (math.isfinite(value) and math.isfinite(spread) and spread > 0):
        return number(value)
    return digits.beside(value, spread)


def shown(value: Any) -> str:
    """Any value of a data frame or of the settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        return str(int(value)) if isinstance(value, Integral) else number(value, 4)
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= MOST_ITEMS else f"array {value.shape}"
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        items = [shown(item) for item in list(value)[:MOST_ITEMS]]
        return clean(", ".join(items) + (f", … ({len(value)} in all)" if len(value) > MOST_ITEMS else "")) or "none"
    return clean(value)


def flattened(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, with those inside a mapping under ``outer.inner``."""
    for name, value in settings.items():
        label = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{label}.")
        else:
            yield clean(label), shown(value)
