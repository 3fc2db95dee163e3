"""ArviZ's summary as a table that keeps its numbers and shows as many digits of them as mean something.

Two decimals for all parameters, ArviZ's default, show 2.00 and 0.00 for a coefficient of 2.0013 with a standard
deviation of 0.0024. Here numbers are not rounded, and only their text follows the standard deviation of each line.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import xarray

from coreset_mcmc.core.digits import beside

SPREADS = ("sd", "mad")


class SummaryTable(pd.DataFrame):
    """A data frame of floats whose text has digits by the standard deviation of each line."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        """What is made of it is a plain data frame."""
        return pd.DataFrame

    def in_text(self) -> pd.DataFrame:
        """The same as text."""
        spread = next((self[name] for name in SPREADS if name in self), pd.Series(math.nan, self.index))
        columns = {
            name: [_cell(str(name), value, width) for value, width in zip(self[name], spread, strict=True)]
            for name in self.columns
        }
        return pd.DataFrame(columns, index=self.index)

    def __repr__(self) -> str:
        """All columns if they fit on a line; otherwise those about Monte Carlo error are named instead of shown."""
        width = pd.get_option("display.width") or 80
        text = self.in_text()
        if len(self) > (pd.get_option("display.max_rows") or len(self)):
            return repr(text)
        names = [str(name) for name in text]
        errors = [name for name in names if name.startswith("mcse")]
        for left_out in ([], errors, [*errors, *(name for name in names if name == "ess_tail")]):
            shown: str = text.drop(columns=left_out).to_string()
            if max(map(len, shown.splitlines()), default=0) <= width:
                return shown + (f"\n[not shown: {', '.join(left_out)}]" if left_out else "")
        return repr(text)

    def to_string(self, *arguments: Any, **options: Any) -> Any:
        return self.in_text().to_string(*arguments, **options)

    def _repr_html_(self) -> str | None:
        return self.in_text().to_html()


def summary_of(tree: xarray.DataTree, **options: Any) -> pd.DataFrame:
    """ArviZ's summary, not rounded unless options say so."""
    import arviz_stats  # noqa: PLC0415 - takes a second

    result: pd.DataFrame = arviz_stats.summary(tree, **{"round_to": "none", **options})
    is_plain = isinstance(result, pd.DataFrame) and options.get("fmt", "wide") == "wide"
    return SummaryTable(result) if is_plain and "round_to" not in options else result


def _cell(name: str, value: Any, spread: Any) -> str:
    value, spread = float(value), float(spread)
    if name.startswith("ess") or name == "min_ss":
        return f"{value:.0f}"
    if name == "r_hat":
        return f"{value:.3f}"
    return beside(value, value if name.startswith("mcse") else spread)
