"""Mistakes in a model are found before any work starts, and the message says which and what to do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.errors import InputError, require, require_count, require_positive
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import check_model, starting_positions

ROWS = np.array([0.5, -1.0, 2.0, 0.0])


def log_prior(position: jax.Array) -> jax.Array:
    return -jnp.sum(position**2)


def log_likelihood(position: jax.Array, batch: jax.Array) -> jax.Array:
    return -((batch - position[0]) ** 2)


def check(
    prior: Any = log_prior, likelihood: Any = log_likelihood, start: Any = (0.0, 0.0), data: Any = ROWS, **options: Any
) -> None:
    """Check a model of two parameters on four rows, as fitting does."""
    model = Model(prior, likelihood, initial_position=np.asarray(start, float), name="mine", **options)
    check_model(model, to_rows(data), starting_positions(model, jax.random.key(0), num_chains=2))


def rejected(*arguments: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        check(*arguments, **options)
    return str(caught.value)


class TestCheckModel:
    def test_a_good_model_passes(self) -> None:
        check()

    def test_a_good_model_of_the_package_passes(self) -> None:
        model = logistic_regression(2)
        data = to_rows({"x": np.ones((5, 2)), "y": np.array([0, 1, 1, 0, 1])})
        check_model(model, data, starting_positions(model, jax.random.key(0), num_chains=3))

    def test_prior_is_not_a_scalar(self) -> None:
        message = rejected(prior=lambda position: -(position**2))
        assert "log_prior(position): got shape (2,); expected a scalar" in message
        assert "Sum the log-densities" in message

    def test_prior_does_not_run(self) -> None:
        message = rejected(prior=lambda position: position["beta"])
        assert "log_prior(position): got" in message
        assert "expected a function that runs" in message

    def test_prior_branches_on_a_value(self) -> None:
        message = rejected(prior=lambda position: 0.0 if position[0] > 0 else 1.0)
        assert "log_prior(position): got TracerBoolConversionError" in message
        assert "It must be a JAX function" in message

    def test_likelihood_sums_over_rows(self) -> None:
        message = rejected(likelihood=lambda position, batch: jnp.sum(log_likelihood(position, batch)))
        assert "log_likelihood(position, batch) on a batch of 1 rows: got shape ()" in message
        assert "expected shape (1,), one value per row" in message
        assert "Do not sum over rows" in message

    def test_likelihood_keeps_an_axis(self) -> None:
        message = rejected(likelihood=lambda position, batch: log_likelihood(position, batch)[:, None])
        assert "got shape (1, 1); expected shape (1,)" in message

    def test_a_latent_for_every_row(self) -> None:
        """A parameter vector as long as the data cannot be lined up with a batch."""
        message = rejected(likelihood=lambda position, batch: -((batch - position) ** 2), start=np.zeros(4))
        assert "got shape (4,); expected shape (1,)" in message
        assert "no parameter may belong to a single row" in message

    def test_a_hard_coded_number_of_rows(self) -> None:
        message = rejected(likelihood=lambda position, batch: -(batch.reshape(4) ** 2) + position[0])
        assert "on a batch of 1 rows: got TypeError" in message
        assert "must not use the number of rows of the full data" in message

    def test_rows_that_only_work_one_at_a_time(self) -> None:
        """One row broadcasts against the parameters; three do not."""
        message = rejected(likelihood=lambda position, batch: -((batch + position)[:1] ** 2))
        assert "on a batch of 3 rows" in message

    def test_a_missing_key_of_the_data(self) -> None:
        message = rejected(likelihood=lambda position, batch: batch["z"] * position[0], data={"x": ROWS})
        assert "log_likelihood(position, batch) on a batch of 1 rows: got KeyError: 'z'" in message

    def test_likelihood_is_not_a_number_at_the_start(self) -> None:
        message = rejected(likelihood=lambda position, batch: jnp.log(batch) + position[0])
        assert "log_likelihood at the initial position: got NaN or infinite values in 2 of 4 rows" in message
        assert "support of the likelihood" in message

    def test_bad_rows_are_counted_over_all_chains(self) -> None:
        """Each chain dislikes another row."""

        def likelihood(position: jax.Array, batch: jax.Array) -> jax.Array:
            return jnp.where(batch == position[0], jnp.nan, 0.0)

        starts = iter([np.array([0.5, 0.0]), np.array([2.0, 0.0])])
        model = Model(log_prior, likelihood, initial_position=lambda key: next(starts))
        positions = starting_positions(model, jax.random.key(0), num_chains=2)
        with pytest.raises(InputError, match="in 2 of 4 rows"):
            check_model(model, to_rows(ROWS), positions)

    def test_prior_is_infinite_at_the_start(self) -> None:
        message = rejected(prior=lambda position: jnp.sum(jnp.log(position)))
        assert "log_prior at the initial position: got [-inf]" in message
        assert "inside the support of the prior" in message

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_start_is_not_finite(self, value: float) -> None:
        message = rejected(start=(0.0, value))
        assert "initial position: got NaN or infinite values" in message
        assert "Pass other initvals" in message

    def test_part_of_the_start_that_is_not_finite_is_named(self) -> None:
        model = Model(lambda position: -(position["a"] ** 2), lambda position, batch: -(batch**2))
        positions = starting_positions(model, jax.random.key(0), 2, initvals={"a": 0.0, "b": {"c": np.nan}})
        with pytest.raises(InputError, match=r"initial position\['b'\]\['c'\]: got NaN"):
            check_model(model, to_rows(ROWS), positions)

    def test_data_are_checked_by_the_model(self) -> None:
        def check_data(batch: np.ndarray) -> None:
            assert isinstance(batch, np.ndarray)
            require(batch.min() >= 0, "rows", got="negative rows", expected="positive rows", fix="Square them.")

        assert rejected(check_data=check_data) == "rows: got negative rows; expected positive rows. Square them."


class TestStartingPositions:
    def test_no_start(self) -> None:
        model = Model(log_prior, log_likelihood, name="mine")
        with pytest.raises(InputError, match=r"model 'mine': got no initial_position.*initvals="):
            starting_positions(model, jax.random.key(0), 2)

    def test_a_value_is_repeated_for_each_chain(self) -> None:
        model = Model(log_prior, log_likelihood, initial_position={"a": 1.0, "b": np.arange(3)})
        positions = starting_positions(model, jax.random.key(0), 4)
        np.testing.assert_array_equal(positions["a"], np.ones(4))
        np.testing.assert_array_equal(positions["b"], np.tile(np.arange(3), (4, 1)))

    def test_a_function_is_drawn_anew_for_each_chain(self, key: jax.Array) -> None:
        model = Model(log_prior, log_likelihood, initial_position=lambda key: jax.random.normal(key, (2,)))
        positions = np.asarray(starting_positions(model, key, 3))
        assert positions.shape == (3, 2)
        assert len(np.unique(positions)) == 6

    def test_the_users_start_wins(self) -> None:
        model = Model(log_prior, log_likelihood, initial_position=np.zeros(2))
        np.testing.assert_array_equal(starting_positions(model, jax.random.key(0), 2, initvals=np.ones(2)), 1.0)

    def test_single_precision_is_widened(self) -> None:
        model = Model(log_prior, log_likelihood, initial_position=np.zeros(2, np.float32))
        assert starting_positions(model, jax.random.key(0), 2).dtype == jnp.float64


class TestMessages:
    def test_parts_are_kept(self) -> None:
        with pytest.raises(InputError) as caught:
            require(False, "thing", got=3, expected="four", fix="Add one.")
        assert str(caught.value) == "thing: got 3; expected four. Add one."
        assert (caught.value.subject, caught.value.got, caught.value.fix) == ("thing", "3", "Add one.")

    def test_nothing_is_raised_when_all_is_well(self) -> None:
        require(True, "thing", got=3, expected="three", fix="")
        require_positive("thing", 0.1)
        require_count("thing", 2, at_least=2, fix="")

    @pytest.mark.parametrize("value", [1, 2.0, True, "3", None])
    def test_counts(self, value: Any) -> None:
        with pytest.raises(InputError, match=r"thing: got .*; expected a whole number of at least 2\. Fix it\."):
            require_count("thing", value, at_least=2, fix="Fix it.")

    def test_values_inside_a_compiled_program_pass(self) -> None:
        def function(value: jax.Array) -> jax.Array:
            require_positive("thing", value)
            return value

        assert jax.jit(function)(-1.0) == -1.0
