"""Tables that are not in memory, made up from a data frame: as several files with types of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from coreset_mcmc.tables.frames import FrameTable


class Files(FrameTable):
    """Runs of rows that begin at ``cuts`` are files; a run that is read may hold parts of several of them.

    Text of every second file comes as categories, in the order in which they appear there, as from a file that stores a
    dictionary; whole numbers as floats where the file lacks some.
    """

    def __init__(self, frame: pd.DataFrame, cuts: Sequence[int] = ()) -> None:
        super().__init__(frame)
        self.cuts = [0, *cuts, len(frame)]
        self.num_read = 0

    def frame(self, start: int, stop: int, names: Sequence[str]) -> pd.DataFrame:
        self.num_read += stop - start
        pieces = []
        for number, (first, end) in enumerate(zip(self.cuts[:-1], self.cuts[1:], strict=True)):
            one, other = max(first, start), min(end, stop)
            if one < other:
                whole = super().frame(one, other, names)
                pieces.append(whole.apply(_as_dictionary) if number % 2 else whole)
        if len(pieces) == 1:
            return pieces[0]
        joined = {name: _joined([piece[name] for piece in pieces]) for name in names}
        return pd.DataFrame(joined)

    def place_of(self, row: int) -> str:
        number = int(np.searchsorted(self.cuts, row, side="right")) - 1
        return f"row {row - self.cuts[number]} of file {number}"


def _as_dictionary(column: pd.Series) -> pd.Series:
    is_text = pd.api.types.is_string_dtype(column.dtype) and not pd.api.types.is_numeric_dtype(column.dtype)
    if not is_text:
        return column
    return pd.Series(pd.Categorical(column, categories=pd.unique(column.dropna())))


def _joined(pieces: list[pd.Series]) -> pd.Series:
    kinds = {isinstance(piece.dtype, pd.CategoricalDtype) and not piece.dtype.ordered for piece in pieces}
    if True in kinds:
        pieces = [piece.astype(object) for piece in pieces]
    return pd.concat(pieces, ignore_index=True)
