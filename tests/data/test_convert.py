"""What users hold becomes checked arrays, or an error that names the array, the rows and the remedy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data import ArrayData, to_array_data, to_batch


class TestAccepted:
    def test_data_frame_becomes_a_mapping_of_columns(self) -> None:
        frame = pd.DataFrame({"x": [1.5, 2.5], "count": [3, 4], "flag": [True, False], 7: [0.0, 1.0]}, index=[10, 20])
        data = to_array_data(frame)
        assert isinstance(data, ArrayData)
        assert set(data.arrays) == {"x", "count", "flag", "7"}
        np.testing.assert_array_equal(data.arrays["x"], [1.5, 2.5])
        np.testing.assert_array_equal(data.arrays["count"], [3, 4])
        assert data.size == 2

    def test_array(self) -> None:
        data = to_array_data(np.arange(6.0).reshape(3, 2))
        np.testing.assert_array_equal(data.arrays, [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        assert data.size == 3

    def test_nested_structure_is_kept(self) -> None:
        given = {"a": {"b": np.ones(2)}, "c": [np.zeros((2, 3)), (np.ones((2, 1, 4)),)], "nothing": None}
        arrays = to_array_data(given).arrays
        assert jax.tree.structure(arrays) == jax.tree.structure(given)
        assert arrays["c"][1][0].shape == (2, 1, 4)

    def test_frames_and_series_inside_a_mapping(self) -> None:
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        arrays = to_array_data({"x": frame, "y": pd.Series([5, 6])}).arrays
        np.testing.assert_array_equal(arrays["x"], frame.to_numpy())
        np.testing.assert_array_equal(arrays["y"], [5, 6])

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            (np.float16, jnp.float64),
            (np.float32, jnp.float64),
            (np.longdouble, jnp.float64),
            (np.uint8, jnp.uint8),
            (np.int64, jnp.int64),
            (bool, jnp.bool_),
        ],
    )
    def test_floats_are_widened_and_other_kinds_kept(self, kind: type, expected: Any) -> None:
        assert to_array_data(np.ones(3, kind)).arrays.dtype == expected

    def test_nullable_columns_without_gaps(self) -> None:
        frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": pd.array([True, False], dtype="boolean")})
        arrays = to_array_data(frame).arrays
        np.testing.assert_array_equal(arrays["a"], [1, 2])
        np.testing.assert_array_equal(arrays["b"], [True, False])

    def test_to_batch_copies_nothing(self) -> None:
        values = np.ones(4)
        assert np.shares_memory(to_batch({"x": values})["x"], values)


TEN = np.arange(10.0)
GAPS = np.where(np.isin(np.arange(10), [3, 8]), np.nan, TEN)
INFINITE = np.stack([TEN, np.where(TEN == 4, -np.inf, TEN)], axis=1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": GAPS}, r"data\['x'\]: got NaN or infinite values in 2 of 10 rows \(first at row 3\).*dropna"),
        (INFINITE, r"data: got NaN or infinite values in 1 of 10 rows \(first at row 4\)"),
        (pd.DataFrame({"a": TEN, "b": GAPS}, index=TEN + 100), r"data\['b'\]: got NaN .* 2 of 10 .* row 3\)"),
        ({"outer": [TEN, GAPS]}, r"data\['outer'\]\[1\]: got NaN"),
        (
            pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
            r"data\['a'\]: got NaN .* 1 of 2 rows \(first at row 1",
        ),
        (pd.DataFrame({"a": ["x", "y"]}), r"data\['a'\]: got dtype (object|str).*factorize"),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"])}), r"data\['a'\]: got dtype object"),
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), r"data\['day'\]: got dtype datetime64"),
        ({"x": np.array([1, "a"], dtype=object)}, r"data\['x'\]: got dtype object; expected real numbers or booleans"),
        ({"x": np.array(["a", "b"])}, r"data\['x'\]: got dtype <U1"),
        ({"x": np.array([1.0 + 2.0j])}, r"data\['x'\]: got dtype complex128"),
        ({"x": TEN, "y": TEN[:9]}, r"leading axes \{\"data\['x'\]\": 10, \"data\['y'\]\": 9\}.*trim the odd one"),
        ({"x": np.empty((0, 2))}, "data: got 0 rows; expected at least one row.*filter"),
        ({"x": np.empty(0)}, "data: got 0 rows"),
        (pd.DataFrame({"a": []}), "data: got 0 rows"),
        (pd.DataFrame({"a": np.array([], int)}), "data: got 0 rows"),
        ({}, "data: got no arrays"),
        (None, "data: got no arrays"),
        (pd.DataFrame(), "data: got no arrays"),
        ({"x": TEN, "scale": 2.0}, r"data\['scale'\]: got a scalar .*Constants belong in the model"),
        (3.0, "data: got a scalar"),
        (pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]), r"data frame: got repeated columns \['a'\]"),
        (pd.DataFrame(np.ones((2, 2)), columns=[1, "1"]), r"data frame: got repeated columns \['1'\].*Rename"),
    ],
)
def test_refused_with_a_message(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_array_data(data)
