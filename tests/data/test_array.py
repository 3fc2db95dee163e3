"""Rows in memory: taken by number, summed in blocks that hold each row once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.data import ArrayData
from coreset_mcmc.data.array import ROWS_PER_BLOCK

BLOCK = 16


def whole_numbers(size: int) -> dict[str, np.ndarray]:
    """Distinct whole numbers, whose sums are exact in any order."""
    return {"x": np.arange(2.0 * size).reshape(size, 2) ** 2, "y": np.arange(size)}


def sums(batch: Any) -> dict[str, Any]:
    """Of JAX or NumPy rows alike."""
    x, y = batch["x"], batch["y"]
    return {"x": x.sum(axis=0), "product": (x[:, 0] * y).sum(), "rows": len(y)}


class TestSumOverRows:
    @pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 48])
    def test_is_the_plain_sum(self, size: int) -> None:
        arrays = whole_numbers(size)
        total = jax.jit(lambda data: data.sum_over_rows(sums))(ArrayData(arrays, rows_per_block=BLOCK))
        jax.tree.map(np.testing.assert_array_equal, total, sums(arrays))
        assert total["rows"] == size

    def test_of_the_default_block(self) -> None:
        size = 2 * ROWS_PER_BLOCK + 5
        data = ArrayData(np.arange(size))
        total = jax.jit(lambda data: data.sum_over_rows(jnp.sum))(data)
        assert total == size * (size - 1) // 2

    @pytest.mark.parametrize(("size", "expected"), [(5, {5}), (16, {16}), (40, {10}), (37, {16, 5})])
    def test_holds_no_more_rows_than_a_block(self, size: int, expected: set[int]) -> None:
        seen = set()

        def record(batch: Any) -> jax.Array:
            seen.add(len(batch["y"]))
            return jnp.sum(batch["y"])

        ArrayData(whole_numbers(size), rows_per_block=BLOCK).sum_over_rows(record)
        assert seen == expected

    def test_has_the_gradient_of_the_plain_sum(self, rng: np.random.Generator) -> None:
        rows = rng.normal(size=(37, 3))
        data = ArrayData(jnp.asarray(rows), rows_per_block=BLOCK)
        theta = rng.normal(size=3)
        gradient = jax.jit(jax.grad(lambda at: data.sum_over_rows(lambda batch: jnp.sum(jnp.sin(batch @ at)))))(theta)
        np.testing.assert_allclose(gradient, np.cos(rows @ theta) @ rows, rtol=1e-12)


class TestArgmaxOverRows:
    @pytest.mark.parametrize("size", [1, 15, 16, 17, 33, 48])
    def test_is_the_plain_argmax(self, size: int, rng: np.random.Generator) -> None:
        values = rng.permutation(size).astype(float)
        find = jax.jit(lambda data: data.argmax_over_rows(lambda batch: batch))
        score, row = find(ArrayData(values, rows_per_block=BLOCK))
        assert score == size - 1
        assert row == np.argmax(values)

    def test_first_of_equals_in_any_block(self) -> None:
        values = np.zeros(50)
        values[[20, 21, 37, 49]] = 1.0
        assert ArrayData(values, rows_per_block=BLOCK).argmax_over_rows(lambda batch: batch)[1] == 20

    def test_never_a_row_without_a_score(self) -> None:
        values = np.full(40, np.nan)
        values[33] = -5.0
        score, row = ArrayData(values, rows_per_block=BLOCK).argmax_over_rows(lambda batch: batch)
        assert (score, row) == (-5.0, 33)


class TestTake:
    def test_in_the_order_asked_with_repeats(self) -> None:
        arrays = whole_numbers(9)
        rows = np.array([8, 0, 3, 3])
        taken = ArrayData(arrays).take(jnp.asarray(rows))
        jax.tree.map(lambda ours, whole: np.testing.assert_array_equal(ours, whole[rows]), taken, arrays)

    def test_keeps_structure_and_types(self) -> None:
        arrays = {"a": (np.zeros((4, 2, 3)), np.ones(4, np.int8)), "b": np.ones(4, bool)}
        taken = ArrayData(arrays).take(jnp.array([1, 2]))
        assert taken["a"][0].shape == (2, 2, 3)
        assert [leaf.dtype for leaf in jax.tree.leaves(taken)] == [leaf.dtype for leaf in jax.tree.leaves(arrays)]


def test_size_is_the_number_of_rows() -> None:
    assert ArrayData({"x": np.zeros((7, 3)), "y": np.zeros(7)}).size == 7


def test_other_rows_of_the_same_shape_do_not_compile_again() -> None:
    compiled = jax.jit(lambda data: data.sum_over_rows(jnp.sum))
    for value in (1.0, 2.0):
        assert compiled(ArrayData(np.full(40, value), rows_per_block=BLOCK)) == 40.0 * value
    assert compiled._cache_size() == 1
