"""The coreset as something to take along: rows and weights that any other program can fit.

A weighted row counts as that many rows: its log-likelihood is multiplied by its weight. The guide
``docs/bring_your_model.md`` shows how to fit one with NumPyro, PyMC, Bambi and Stan.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.trees import coordinate_names, named_leaves
from coreset_mcmc.core.types import Position
from coreset_mcmc.data import ArrayData
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.source import Source
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.results.notebook import coreset_display
from coreset_mcmc.results.term_table import read_table, term_from, term_path, term_table, write_table

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = on_use("pandas")

ROW, WEIGHT, NUM_ROWS, NUM_COORDINATES = "row", "weight", "num_rows", "gaussian_coordinates"


@dataclass(frozen=True)
class Coreset:
    """A weighted subset of rows that stands in for the full data."""

    indices: np.ndarray
    """Row numbers (M,) in the data."""
    weights: np.ndarray
    """Weights (M,)."""
    num_rows: int
    """N, the number of rows of the data."""
    columns: Mapping[str, np.ndarray]
    """The rows themselves, one array for each column or block of columns."""
    term: GaussianTerm | None = None
    """A Gaussian factor that belongs to these weights; without one the rows say everything."""
    coordinates: tuple[str, ...] = ()
    """Names of what the factor is about: parameters as chains see them, on the unconstrained scale."""

    @classmethod
    def of(cls, selected: SelectedRows, rows: Rows | ArrayData, position: Position) -> Coreset:
        """On the host, with the values of its rows; ``position`` names the coordinates of a term."""
        indices = np.asarray(selected.indices)
        columns = {name: np.asarray(leaf) for name, leaf in named_leaves(rows.take(indices), "data").items()}
        term = jax.tree.map(np.asarray, selected.term)
        names = () if term is None else coordinate_names(position)
        return cls(indices, np.asarray(selected.weights), rows.size, columns, term, names)

    @property
    def selected(self) -> SelectedRows:
        """Row numbers, weights and term."""
        return SelectedRows(self.indices, self.weights, self.term)

    @property
    def size(self) -> int:
        return int(self.indices.size)

    @property
    def effective_size(self) -> float:
        """Kish's number of rows that equal weights would make as concentrated: (sum w)^2 / sum w^2."""
        squares = float(np.sum(self.weights**2))
        return float(self.weights.sum() ** 2 / squares) if squares > 0.0 else 0.0

    def to_frame(self, data: Any = None) -> pd.DataFrame:
        """Row numbers, weights and values as a table.

        Args:
            data: the full data, to show other columns than those that were fitted: a DataFrame, which keeps its own
                columns, types and index labels, a mapping of arrays, or files that were fitted.
        """
        if data is None:
            return self._table(self.columns)
        source = data.source if isinstance(data, Rows) else data
        if isinstance(source, Source):
            return self._from_source(source)
        is_frame = isinstance(data, pd.DataFrame)
        arrays = {} if is_frame else named_leaves(data, "data")
        self._check_size({len(data)} if is_frame else {len(array) for array in arrays.values()})
        if is_frame:
            result: pd.DataFrame = data.iloc[self.indices].assign(**{ROW: self.indices, WEIGHT: self.weights})
            return result
        return self._table({name: np.asarray(array)[self.indices] for name, array in arrays.items()})

    def term_frame(self) -> pd.DataFrame:
        """The Gaussian term as a table: for each coordinate its name, centre, slope and a row of the precision."""
        require(
            self.term is not None,
            "term_frame",
            got="a coreset without a Gaussian term",
            expected="one with a term",
            fix="Ask coreset.term first; without one, rows and weights say everything.",
        )
        assert self.term is not None
        return term_table(self.term, self.coordinates)

    def _from_source(self, source: Source) -> pd.DataFrame:
        """All columns of these rows if the source can show them as a table, else those that were fitted."""
        self._check_size({source.size})
        frame_of: Callable[[np.ndarray], pd.DataFrame] | None = getattr(source, "frame_of", None)
        if frame_of is None:
            return self._table(self.columns)
        return frame_of(self.indices).assign(**{ROW: self.indices, WEIGHT: self.weights})

    def _check_size(self, sizes: set[int]) -> None:
        require(
            sizes == {self.num_rows},
            "to_frame data",
            got=f"{sorted(sizes)} rows",
            expected=f"the {self.num_rows} rows that the coreset was made of",
            fix="Pass the same data, in the same order.",
        )

    def _table(self, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
        table: dict[str, np.ndarray] = {ROW: self.indices, WEIGHT: self.weights}
        for name, values in columns.items():
            flat = values.reshape(self.size, -1)
            table |= {name if values.ndim == 1 else f"{name}[{j}]": flat[:, j] for j in range(flat.shape[1])}
        return pd.DataFrame(table)

    def merge(self, *others: Coreset, disjoint: bool) -> Coreset:
        """One coreset out of several.

        Args:
            others: coresets with the same columns.
            disjoint: True if each belongs to a data set of its own, such as the shards of a large one: rows are put
                together, and row numbers count on from one data set to the next. False if all belong to the same data
                set, such as fits with several seeds: weights are averaged, a row that one of them lacks counting as
                zero there. The merged log-likelihood is the sum or the average of theirs, Gaussian terms included.
        """
        parts = (self, *others)
        require(
            all(set(part.columns) == set(self.columns) for part in parts),
            "merge",
            got=f"columns {[sorted(part.columns) for part in parts]}",
            expected="the same columns in each coreset",
            fix="Merge coresets of one model.",
        )
        if disjoint:
            starts = np.cumsum([0, *(part.num_rows for part in parts[:-1])])
            return Coreset(
                np.concatenate([part.indices + start for part, start in zip(parts, starts, strict=True)]),
                np.concatenate([part.weights for part in parts]),
                sum(part.num_rows for part in parts),
                {name: np.concatenate([part.columns[name] for part in parts]) for name in self.columns},
                *sum_of_terms(parts, 1.0),
            )
        require(
            len({part.num_rows for part in parts}) == 1,
            "merge",
            got=f"data sets of {[part.num_rows for part in parts]} rows",
            expected="coresets of one data set",
            fix="Pass disjoint=True for coresets of different rows.",
        )
        stacked = np.concatenate([part.indices for part in parts])
        indices, first, places = np.unique(stacked, return_index=True, return_inverse=True)
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in self.columns}
        for name, values in columns.items():
            require(
                np.array_equal(values[first][places], values, equal_nan=np.issubdtype(values.dtype, np.floating)),
                "merge",
                got=f"different values of {name!r} in rows of the same number",
                expected="coresets of one data set",
                fix="Pass disjoint=True for coresets of different rows.",
            )
        weights = np.bincount(places, np.concatenate([part.weights for part in parts])) / len(parts)
        own = {name: values[first] for name, values in columns.items()}
        return Coreset(indices, weights, self.num_rows, own, *sum_of_terms(parts, 1.0 / len(parts)))

    def _repr_html_(self) -> str:
        return coreset_display(self)

    def save(self, path: Path | str) -> Path:
        """Write the table as CSV or, for a name that ends in ``.parquet``, as Parquet (pandas needs ``pyarrow``).

        A Gaussian term is written beside it, to ``NAME.gaussian.csv`` or ``NAME.gaussian.parquet``, with a line for
        each coordinate: its name, the centre, the slope and a row of the precision.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        table = self.to_frame().assign(**{NUM_ROWS: self.num_rows})
        beside = term_path(path)
        if self.term is None:
            beside.unlink(missing_ok=True)
        else:
            table = table.assign(**{NUM_COORDINATES: len(self.coordinates)})
            write_table(term_table(self.term, self.coordinates), beside)
        write_table(table, path)
        return path

    @classmethod
    def load(cls, path: Path | str) -> Coreset:
        """Read what :meth:`save` wrote; a block of columns ``x[0], x[1], ...`` becomes one array again."""
        path = Path(path)
        try:
            table = read_table(path)
            indices, weights, num_rows = (table.pop(name).to_numpy() for name in (ROW, WEIGHT, NUM_ROWS))
            has_term = table.pop(NUM_COORDINATES) is not None if NUM_COORDINATES in table else False
            term, coordinates = term_from(read_table(term_path(path))) if has_term else (None, ())
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"Coreset.load({str(path)!r})",
                got=f"{type(error).__name__}: {error}",
                expected="a file that Coreset.save wrote",
                fix="Check the path.",
            ) from error
        blocks: dict[str, list[np.ndarray]] = {}
        for name in table.columns:
            blocks.setdefault(str(name).partition("[")[0], []).append(table[name].to_numpy())
        columns = {
            name: parts[0] if name in table.columns else np.stack(parts, axis=1) for name, parts in blocks.items()
        }
        return cls(indices, weights, int(num_rows[0]), columns, term, coordinates)


def sum_of_terms(parts: Sequence[Coreset], factor: float) -> tuple[GaussianTerm | None, tuple[str, ...]]:
    """So many times the sum of the terms, and what it is about; None if none has one."""
    with_terms = [part for part in parts if part.term is not None]
    if not with_terms:
        return None, ()
    names = with_terms[0].coordinates
    require(
        all(part.coordinates == names for part in with_terms),
        "merge",
        got="Gaussian terms about different parameters",
        expected="coresets of one model",
        fix="Merge coresets of one model.",
    )
    terms = [part.term.times(factor) for part in with_terms if part.term is not None]
    return reduce(operator.add, terms), names
