"""Rows that are not finite are counted in a pass, wherever they lie, and the first is named."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.finite import NONE, NotFinite, check_finite
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.data.task import Task

SIZE = 200_000


def with_gaps() -> dict[str, np.ndarray]:
    x = np.ones((SIZE, 3), np.float32)
    x[[70_001, 140_000, 140_000, SIZE - 1], [0, 1, 2, 0]] = np.nan, np.inf, -np.inf, np.nan
    y = np.zeros(SIZE)
    y[SIZE - 1] = np.inf
    return {"count": np.arange(SIZE), "flag": np.ones(SIZE, bool), "x": x, "y": y}


@pytest.mark.parametrize("leaf_rows", [2**8, 2**16, 2**18])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_counted_and_the_first_remembered(leaf_rows: int, threads: int) -> None:
    rows = Rows(ArraySource(with_gaps()), Local(threads), Layout(SIZE, leaf_rows))
    (found,) = rows.scan([Task(NotFinite())], "checks")
    np.testing.assert_array_equal(found, [[0, NONE], [0, NONE], [3, 70_001], [1, SIZE - 1]])
    message = r"data\['x'\]: got NaN or infinite values in 3 of 200000 rows \(first at row 70001\).*dropna"
    with pytest.raises(InputError, match=message):
        check_finite(found, rows.source)
    check_finite(found[[0, 1, 0, 1]], rows.source)


def test_the_place_is_that_of_the_source() -> None:
    class Named(ArraySource):
        def place_of(self, row: int) -> str:
            return f"line {row + 2} of my.csv"

    source = Named({"a": np.array([1.0, np.nan])})
    (found,) = Rows(source).scan([Task(NotFinite())], "checks")
    with pytest.raises(InputError, match=r"1 of 2 rows \(first at line 3 of my.csv\)"):
        check_finite(found, source)


def test_arrays_are_checked_without_large_temporaries() -> None:
    x = np.ones((1_000_000, 4))
    tracemalloc.start()
    rows = to_rows({"x": x})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 20
    assert np.shares_memory(rows.source.whole()["x"], x)


class TestToRows:
    @pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint64, bool])
    def test_arrays_keep_their_types_and_memory(self, kind: Any) -> None:
        array = np.ones(5, kind)
        held = to_rows(array).source.whole()
        assert held.dtype == array.dtype
        assert np.shares_memory(held, array)

    @pytest.mark.parametrize("kind", [np.longdouble, ">f8", ">i4"])
    def test_types_that_no_program_takes_are_converted(self, kind: Any) -> None:
        rows = to_rows(np.array([1, 2, 3]).astype(kind))
        assert rows.source.whole().dtype in (np.float64, np.int32)
        total = rows.sum(_total, description="sum")
        assert total == 6

    def test_rows_and_sources_pass(self) -> None:
        rows, engine = Rows.of_arrays({"a": np.ones(3)}), Local(1)
        assert to_rows(rows) is rows
        assert to_rows(rows.source).source is rows.source
        again = to_rows(rows, engine)
        assert (again.source, again.engine, again.layout) == (rows.source, engine, rows.layout)
        assert to_rows(np.ones(3), engine).engine is engine

    def test_gaps_are_refused_at_once(self) -> None:
        with pytest.raises(InputError, match=r"data\['x'\]: got NaN .* 3 of 200000 rows \(first at row 70001\)"):
            to_rows(with_gaps())


def _total(batch: Any, weights: Any) -> Any:
    return (batch * weights).sum()
