"""Ready-made models against SciPy, the written-out gradients, high precision at extreme arguments and closed forms."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from coreset_mcmc import models
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.registry import MODELS
from coreset_mcmc.models import gaussian_location, linear_regression, logistic_regression, poisson_regression
from coreset_mcmc.models.gaussian_location import coreset_kl, coreset_kl_gradient, coreset_posterior
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.special import SOFTPLUS_IS_EXPONENTIAL_BELOW, log_softplus, softplus

NUM_ROWS, NUM_FEATURES = 7, 3

REGRESSIONS = {"linear": linear_regression, "logistic": logistic_regression, "poisson": poisson_regression}
every_regression = pytest.mark.parametrize("name", REGRESSIONS)


def example(name: str, rng: np.random.Generator) -> tuple[Model, Any, Any]:
    """A model, a position and some rows in its support."""
    if name == "gaussian":
        return gaussian_location(NUM_FEATURES), {"theta": rng.normal(size=NUM_FEATURES)}, rng.normal(size=(NUM_ROWS, 3))
    position = {"beta": rng.normal(size=NUM_FEATURES + 1)}
    if name == "linear":
        position["log_variance"] = np.asarray(rng.normal())
    y = {
        "linear": rng.normal(size=NUM_ROWS),
        "logistic": rng.integers(0, 2, NUM_ROWS),
        "poisson": rng.poisson(3.0, NUM_ROWS),
    }[name]
    return REGRESSIONS[name](NUM_FEATURES), position, {"x": rng.normal(size=(NUM_ROWS, NUM_FEATURES)), "y": y}


def design(batch: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack([np.ones(len(batch["x"])), batch["x"]])


def scipy_log_likelihood(name: str, position: Any, batch: Any) -> np.ndarray:
    if name == "gaussian":
        return stats.norm.logpdf(batch, position["theta"]).sum(axis=1)
    eta = design(batch) @ position["beta"]
    if name == "linear":
        return stats.norm.logpdf(batch["y"], eta, np.exp(0.5 * position["log_variance"]))
    if name == "logistic":
        return stats.bernoulli.logpmf(batch["y"], 1.0 / (1.0 + np.exp(-eta)))
    return stats.poisson.logpmf(batch["y"], np.log1p(np.exp(eta)))


def scipy_log_prior(name: str, position: Any) -> float:
    density = stats.cauchy if name == "logistic" else stats.norm
    return float(sum(density.logpdf(leaf).sum() for leaf in position.values()))


@pytest.mark.parametrize("name", ["gaussian", *REGRESSIONS])
class TestAgainstScipy:
    """Up to terms free of the position: differences between two positions agree, row by row."""

    def test_log_likelihood(self, rng: np.random.Generator, name: str) -> None:
        model, here, batch = example(name, rng)
        _, there, _ = example(name, rng)
        log_likelihood = jax.jit(model.log_likelihood)
        ours = np.asarray(log_likelihood(here, batch)) - np.asarray(log_likelihood(there, batch))
        expected = scipy_log_likelihood(name, here, batch) - scipy_log_likelihood(name, there, batch)
        assert ours.shape == (NUM_ROWS,)
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)

    def test_log_prior(self, rng: np.random.Generator, name: str) -> None:
        model, here, _ = example(name, rng)
        _, there, _ = example(name, rng)
        ours = model.log_prior(here) - model.log_prior(there)
        expected = scipy_log_prior(name, here) - scipy_log_prior(name, there)
        assert ours.shape == ()
        assert float(ours) == pytest.approx(expected, rel=1e-10, abs=1e-12)

    def test_one_row_at_a_time(self, rng: np.random.Generator, name: str) -> None:
        """A row's value does not depend on the rows beside it."""
        model, position, batch = example(name, rng)
        whole = jax.jit(model.log_likelihood)(position, batch)
        single = jax.jit(model.log_likelihood)(position, jax.tree.map(lambda leaf: leaf[[3]], batch))
        np.testing.assert_allclose(single, whole[3:4], rtol=1e-13)

    def test_accepts_its_own_rows_and_starts_in_the_support(self, rng: np.random.Generator, name: str) -> None:
        model, position, batch = example(name, rng)
        assert model.check_data is not None
        model.check_data(batch)
        start = model.initial_position
        assert jax.tree.map(np.shape, start) == jax.tree.map(np.shape, position)
        assert np.all(np.isfinite(jax.jit(model.log_likelihood)(start, batch)))


class TestGradients:
    """Against the formulas written out: a factor for each row times [1, x]."""

    def factors(self, name: str, position: Any, batch: Any) -> np.ndarray:
        eta, y = design(batch) @ position["beta"], batch["y"]
        logistic = 1.0 / (1.0 + np.exp(-eta))
        if name == "linear":
            return np.exp(-position["log_variance"]) * (y - eta)
        if name == "logistic":
            return y - logistic
        return (y / np.log1p(np.exp(eta)) - 1.0) * logistic

    @every_regression
    def test_of_the_coefficients(self, rng: np.random.Generator, name: str) -> None:
        model, position, batch = example(name, rng)
        gradient = jax.jit(jax.jacobian(model.log_likelihood))(position, batch)["beta"]
        expected = self.factors(name, position, batch)[:, None] * design(batch)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)

    @every_regression
    def test_at_the_start(self, rng: np.random.Generator, name: str) -> None:
        """Where all predictors are exactly zero, on the seam of functions defined by cases."""
        model, _, batch = example(name, rng)
        gradient = jax.jit(jax.jacobian(model.log_likelihood))(model.initial_position, batch)["beta"]
        expected = self.factors(name, model.initial_position, batch)[:, None] * design(batch)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)

    def test_of_the_log_variance(self, rng: np.random.Generator) -> None:
        model, position, batch = example("linear", rng)
        gradient = jax.jit(jax.jacobian(model.log_likelihood))(position, batch)["log_variance"]
        residual = batch["y"] - design(batch) @ position["beta"]
        np.testing.assert_allclose(gradient, 0.5 * np.exp(-position["log_variance"]) * residual**2 - 0.5, rtol=1e-10)

    def test_of_the_location(self, rng: np.random.Generator) -> None:
        model, position, rows = example("gaussian", rng)
        gradient = jax.jit(jax.jacobian(model.log_likelihood))(position, rows)["theta"]
        np.testing.assert_allclose(gradient, rows - position["theta"], rtol=1e-12)


class TestLinearPredictor:
    @every_regression
    def test_split_is_the_whole(self, rng: np.random.Generator, name: str) -> None:
        model, position, batch = example(name, rng)
        split = model.linear_predictor
        assert split is not None
        predicted = split.predictor(position, batch)
        np.testing.assert_allclose(predicted, design(batch) @ position["beta"], rtol=1e-12)
        np.testing.assert_array_equal(
            split.log_likelihood(position, predicted, batch), model.log_likelihood(position, batch)
        )

    @every_regression
    def test_predictor_is_affine(self, rng: np.random.Generator, name: str) -> None:
        model, start, batch = example(name, rng)
        _, end, _ = example(name, rng)
        assert model.linear_predictor is not None
        predictor = model.linear_predictor.predictor
        beyond = jax.tree.map(lambda a, b: a + 3.0 * (b - a), start, end)
        at_start, at_end = predictor(start, batch), predictor(end, batch)
        np.testing.assert_allclose(predictor(beyond, batch), at_start + 3.0 * (at_end - at_start), rtol=1e-11)

    def test_options_reach_the_model(self) -> None:
        model = Model.from_linear_predictor(
            lambda position: -jnp.sum(position**2),
            lambda position, batch: batch @ position,
            lambda position, predicted, batch: -(predicted**2),
            name="mine",
            differentiable=False,
        )
        assert (model.name, model.differentiable) == ("mine", False)
        np.testing.assert_array_equal(model.log_likelihood(jnp.array([2.0]), jnp.array([[3.0]])), [-36.0])


EXTREMES = np.concatenate(
    [
        [-1e4, -750.0, -745.0, -709.0, -100.0, -40.0, 40.0, 100.0, 709.0, 710.0, 1e4],
        np.nextafter(SOFTPLUS_IS_EXPONENTIAL_BELOW, [-np.inf, np.inf]),
        [SOFTPLUS_IS_EXPONENTIAL_BELOW, -20.0, -1.0, -1e-8, 0.0, 1e-8, 0.5, 1.0, 20.0],
    ]
)


def exact(function: Callable[[decimal.Decimal], decimal.Decimal], x: float) -> float:
    """Evaluated with 400 digits, enough for 1 + e^-800."""
    with decimal.localcontext(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        return float(function(decimal.Decimal(float(x))))


def exact_softplus(x: decimal.Decimal) -> decimal.Decimal:
    """log(1 + e^x); at the far ends the missing terms are below a part in 10^300."""
    if abs(x) > 800:
        return x.exp() if x < 0 else x
    return (1 + x.exp()).ln()


def exact_logistic(x: decimal.Decimal) -> decimal.Decimal:
    return 1 / (1 + (-x).exp())


class TestExtremes:
    """Subnormal numbers count as zero, as XLA flushes them."""

    def test_softplus(self) -> None:
        expected = [exact(exact_softplus, x) for x in EXTREMES]
        np.testing.assert_allclose(jax.jit(softplus)(EXTREMES), expected, rtol=1e-15, atol=1e-307)

    def test_log_softplus(self) -> None:
        expected = [exact(lambda x: exact_softplus(x).ln(), x) for x in EXTREMES]
        np.testing.assert_allclose(jax.jit(log_softplus)(EXTREMES), expected, rtol=1e-14, atol=1e-16)

    def test_slope_of_softplus(self) -> None:
        expected = [exact(exact_logistic, x) for x in EXTREMES]
        slopes = jax.jit(jax.vmap(jax.grad(softplus)))(EXTREMES)
        np.testing.assert_allclose(slopes, expected, rtol=1e-14, atol=1e-307)

    def test_slope_of_log_softplus(self) -> None:
        expected = [exact(lambda x: exact_logistic(x) / exact_softplus(x), x) for x in EXTREMES]
        slopes = jax.jit(jax.vmap(jax.grad(log_softplus)))(EXTREMES)
        np.testing.assert_allclose(slopes, expected, rtol=1e-14)

    @pytest.mark.parametrize("zero", [0.0, -0.0])
    def test_curvature_at_zero(self, zero: float) -> None:
        assert float(jax.jit(jax.grad(jax.grad(softplus)))(zero)) == 0.25

    @pytest.mark.parametrize(("name", "responses"), [("logistic", [0, 1]), ("poisson", [0, 1, 400])])
    def test_likelihoods_and_their_gradients_are_finite(self, name: str, responses: list[int]) -> None:
        model = REGRESSIONS[name](1)

        def value(eta: jax.Array, response: jax.Array) -> jax.Array:
            batch = {"x": jnp.zeros((1, 1)), "y": response[None]}
            return model.log_likelihood({"beta": jnp.stack([eta, jnp.zeros(())])}, batch)[0]

        evaluate = jax.jit(jax.vmap(jax.value_and_grad(value)))
        for response in responses:
            values, slopes = evaluate(EXTREMES, np.full(len(EXTREMES), response))
            assert np.all(np.isfinite(values))
            assert np.all(np.isfinite(slopes))

    def test_impossible_rows_cost_what_they_should(self) -> None:
        """At eta = -1e4 a count of 400 costs 400 * 1e4, and a failure at a certain success 1e4."""
        position, features = {"beta": jnp.array([-1e4, 0.0])}, jnp.zeros((1, 1))
        counted = poisson_regression(1).log_likelihood(position, {"x": features, "y": jnp.array([400])})
        np.testing.assert_allclose(counted, [-4e6], rtol=1e-15)
        succeeded = logistic_regression(1).log_likelihood(position, {"x": features, "y": jnp.array([1])})
        np.testing.assert_allclose(succeeded, [-1e4], rtol=1e-15)


def textbook_kl(mean: np.ndarray, variance: float, to_mean: np.ndarray, to_variance: float) -> float:
    """Between two isotropic Gaussians."""
    ratio = variance / to_variance
    gap = np.sum((mean - to_mean) ** 2) / to_variance
    return 0.5 * (len(mean) * (ratio - 1.0 - math.log(ratio)) + float(gap))


class TestGaussianLocation:
    @pytest.fixture
    def data(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=(40, 3)) + np.array([1.0, -2.0, 0.5])

    @pytest.fixture
    def weights(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(0.0, 10.0, 8)

    def test_posterior_is_conjugate(self, data: np.ndarray, weights: np.ndarray) -> None:
        """Its log-density differs from prior + weighted likelihood by a constant."""
        model, rows = gaussian_location(3), data[:8]
        mean, variance = coreset_posterior(rows, weights)

        def gap(theta: np.ndarray) -> float:
            position = {"theta": theta}
            target = model.log_prior(position) + weights @ np.asarray(model.log_likelihood(position, rows))
            return float(target) - float(stats.norm.logpdf(theta, mean, np.sqrt(variance)).sum())

        assert gap(np.zeros(3)) == pytest.approx(gap(np.array([1.0, 2.0, -3.0])), rel=1e-10)

    def test_kl_is_that_of_the_two_posteriors(self, data: np.ndarray, weights: np.ndarray) -> None:
        mean, variance = coreset_posterior(data[:8], weights)
        full_mean, full_variance = coreset_posterior(data, np.ones(40))
        expected = textbook_kl(np.asarray(mean), float(variance), np.asarray(full_mean), float(full_variance))
        assert float(coreset_kl(data[:8], weights, data)) == pytest.approx(expected, rel=1e-10)

    def test_kl_by_numerical_integration(self, data: np.ndarray, weights: np.ndarray) -> None:
        line = data[:, :1]
        (mean,), variance = coreset_posterior(line[:8], weights)
        (full_mean,), full_variance = coreset_posterior(line, np.ones(40))
        first = stats.norm(float(mean), math.sqrt(variance))
        second = stats.norm(float(full_mean), math.sqrt(full_variance))
        ends = first.mean() - 12.0 * first.std(), first.mean() + 12.0 * first.std()
        expected, _ = integrate.quad(
            lambda theta: first.pdf(theta) * (first.logpdf(theta) - second.logpdf(theta)), *ends, epsabs=1e-12
        )
        assert float(coreset_kl(line[:8], weights, line)) == pytest.approx(expected, rel=1e-8)

    def test_kl_vanishes_for_all_rows_with_weight_one(self, data: np.ndarray) -> None:
        assert float(coreset_kl(data, np.ones(40), data)) < 1e-25
        np.testing.assert_allclose(coreset_kl_gradient(data, np.ones(40), data), 0.0, atol=1e-12)

    @pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-7])
    def test_small_values_do_not_cancel_when_the_weights_sum_to_n(
        self, rng: np.random.Generator, data: np.ndarray, size: float
    ) -> None:
        """|Yw - X1|^2 / (2 (1 + N)), down to 1e-15; the sums of 40 rows carry a rounding error of about 1e-14."""
        shift = size * rng.normal(size=40)
        shift -= shift.mean()
        expected = np.sum((shift @ data) ** 2) / (2.0 * 41.0)
        assert float(coreset_kl(data, 1.0 + shift, data)) == pytest.approx(expected, rel=1e-12 / size)

    def test_small_values_do_not_cancel_when_only_the_sum_is_off(self) -> None:
        """With rows at zero the means agree and KL = d (e - log(1 + e)) / 2, which is d e^2 / 4 for small e."""
        rows = np.zeros((10, 2))
        weights = np.full(10, 1.0 - 1e-7)
        excess = 1e-6 / (11.0 - 1e-6)
        assert float(coreset_kl(rows, weights, rows)) == pytest.approx(2 * excess**2 / 4.0, rel=1e-5)

    def test_gradient_by_finite_differences(self, data: np.ndarray, weights: np.ndarray) -> None:
        rows = data[:8]
        steps = 1e-5 * np.eye(8)
        differences = [
            float(coreset_kl(rows, weights + step, data) - coreset_kl(rows, weights - step, data)) / 2e-5
            for step in steps
        ]
        np.testing.assert_allclose(coreset_kl_gradient(rows, weights, data), differences, rtol=1e-6, atol=1e-7)

    def test_gradient_written_out_is_the_derivative(self, data: np.ndarray, weights: np.ndarray) -> None:
        derivative = jax.jit(jax.grad(coreset_kl, argnums=1))(data[:8], weights, data)
        np.testing.assert_allclose(coreset_kl_gradient(data[:8], weights, data), derivative, rtol=1e-9, atol=1e-12)


X, Y = np.zeros((4, 2)), np.array([0.0, 1.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (linear_regression(2), X, r"regression data: got ndarray; .*\{\"x\""),
        (linear_regression(2), {"x": X}, r"regression data: got keys \['x'\]"),
        (linear_regression(2), {"x": X[:, 0], "y": Y}, r"features x: got shape \(4,\); expected shape \(N, 2\)"),
        (linear_regression(1), {"x": X, "y": Y}, r"features x: got shape \(4, 2\); .*without the intercept"),
        (poisson_regression(2), {"x": X, "y": Y[:, None]}, r"response y: got shape \(4, 1\)"),
        (logistic_regression(2), {"x": X, "y": Y + 1.0}, r"2 rows outside, first y\[1\] = .*2\.0.*0 or 1"),
        (logistic_regression(2), {"x": X, "y": np.where(Y > 0, 1.0, np.nan)}, r"2 rows outside, first y\[0\]"),
        (poisson_regression(2), {"x": X, "y": Y - 1.0}, r"2 rows outside, first y\[0\] = .*-1\.0.*whole numbers"),
        (poisson_regression(2), {"x": X, "y": Y + 0.5}, r"4 rows outside, first y\[0\]"),
        (gaussian_location(2), X.T, r"gaussian_location data: got shape \(2, 4\); expected an array of shape \(N, 2\)"),
        (gaussian_location(2), {"x": X}, "gaussian_location data: got dict"),
        (gaussian_location(4), np.zeros(4), r"gaussian_location data: got shape \(4,\)"),
    ],
)
def test_unsuitable_data_is_named(model: Model, data: Any, message: str) -> None:
    assert model.check_data is not None
    with pytest.raises(InputError, match=message):
        model.check_data(data)


FACTORIES = [gaussian_location, linear_regression, logistic_regression, poisson_regression]
TESTED_ELSEWHERE = {
    models.bradley_terry,
    models.gaussian_mixture,
    models.hierarchical_logistic_regression,
    models.sparse_regression,
    models.unidentified_regression,
}


def test_every_registered_model_is_tested_somewhere() -> None:
    assert {*FACTORIES, *TESTED_ELSEWHERE} == set(MODELS.values())


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
class TestFactories:
    def test_are_cached(self, factory: Callable[[int], Model]) -> None:
        """A model is a constant of the compiled program: an equal one must be the same object."""
        assert factory(3) is factory(3)
        assert factory(3) is not factory(4)

    def test_name_themselves(self, factory: Callable[[int], Model]) -> None:
        assert factory(3).name == factory.__name__

    @pytest.mark.parametrize("count", [0, -1, 2.5, "x"])
    def test_refuse_bad_counts(self, factory: Callable[[Any], Model], count: Any) -> None:
        with pytest.raises(InputError, match=r"(dim|num_features): got .*whole number of at least 1"):
            factory(count)


def test_linear_regression_starts_at_a_large_variance() -> None:
    assert linear_regression(2).initial_position["log_variance"] == 10.0


@pytest.mark.parametrize("arguments", [(None, lambda position, batch: 0.0), (lambda position: 0.0, "l")])
def test_a_model_is_two_functions(arguments: Any) -> None:
    with pytest.raises(InputError, match=r"Model log_(prior|likelihood): got (NoneType|str); expected a function"):
        Model(*arguments)
