"""As many digits of a number as its spread gives a meaning to."""

from __future__ import annotations

import math

MOST_DECIMALS, LARGEST = 6, 1e9
"""Beyond these a number is written with a power of ten."""


def beside(value: float, spread: float) -> str:
    """To two digits of its spread: 2.0013 beside 0.0024, 1.2031e-06 beside 1.1e-09; four digits if there is none."""
    if not (math.isfinite(value) and math.isfinite(spread) and spread > 0):
        return f"{value:.4g}"
    last = math.floor(math.log10(spread)) - 1
    if last >= -MOST_DECIMALS and abs(value) < LARGEST:
        return f"{value:z,.{max(-last, 0)}f}"
    first = math.floor(math.log10(abs(value))) if value else last
    return f"{value:z.{min(max(first - last, 0), 15)}e}"
