"""Optimisers against plain NumPy transcriptions, their first steps and invariances, and one contract for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.coreset_mcmc.hot_dog import HotDoG
from coreset_mcmc.methods.coreset_mcmc.optimizers import (
    SGD,
    AdaGrad,
    Adam,
    DoG,
    DoWG,
    OptaxOptimizer,
    Prodigy,
    as_optimizer,
)
from coreset_mcmc.methods.coreset_mcmc.projections import NonNegative
from coreset_mcmc.methods.registry import OPTIMIZERS

CASES = {
    "sgd": lambda scale=1.0: SGD(0.05 * scale),
    "sgd-decaying": lambda scale=1.0: SGD(0.1 * scale, alpha=0.5),
    "adam": lambda scale=1.0: Adam(0.05 * scale),
    "adam-decaying": lambda scale=1.0: Adam(0.5 * scale, decay=0.3 * scale),
    "adagrad": lambda scale=1.0: AdaGrad(1.0 * scale),
    "dog": lambda scale=1.0: DoG(1e-3 * scale),
    "dowg": lambda scale=1.0: DoWG(1e-3 * scale),
    "prodigy": lambda scale=1.0: Prodigy(1e-3 * scale),
    "hot-dog": lambda scale=1.0: HotDoG(1e-3 * scale),
}
"""Each builds an optimiser whose numbers are multiplied by ``scale``."""

every_optimizer = pytest.mark.parametrize("build", CASES.values(), ids=CASES.keys())

CURVATURES = np.array([1.0, 2.0, 5.0, 10.0])
OPTIMUM = np.array([3.0, 0.5, 7.0, 0.0])
START = np.full(4, 2.5)


NUM_STEPS = 60
"""Of every path, so that each kind of optimiser compiles once for this file."""


@partial(jax.jit, static_argnames="kind")
def _trajectory(optimizer: Any, gradients: jax.Array, curvature: jax.Array, kind: type) -> jax.Array:
    del kind

    def step(carry: Any, gradient: jax.Array) -> Any:
        weights, state = carry
        updates, state = optimizer.update(gradient + curvature * weights, state, weights)
        weights = NonNegative().project(weights + updates, 10)
        return (weights, state), weights

    start = jnp.asarray(START)
    return jax.lax.scan(step, (start, optimizer.init(start)), gradients)[1]


def trajectory(optimizer: Any, gradients: np.ndarray, *, curvature: Any = 0.0) -> np.ndarray:
    """Weights (T, M) after each projected step; the gradient is ``gradients[t] + curvature * weights``."""
    assert gradients.shape == (NUM_STEPS, len(START))
    curvatures = np.broadcast_to(curvature, START.shape)
    return np.asarray(_trajectory(optimizer, gradients, curvatures, type(optimizer)))


@partial(jax.jit, static_argnames="kind")
def _first_step(optimizer: Any, gradient: jax.Array, kind: type) -> jax.Array:
    del kind
    params = jnp.full(gradient.shape, 7.0)
    return optimizer.update(gradient, optimizer.init(params), params)[0]


def first_step(optimizer: Any, gradient: np.ndarray) -> np.ndarray:
    return np.asarray(_first_step(optimizer, gradient, type(optimizer)))


def transcribed(rule: Callable[[], Iterator[Any]], gradients: np.ndarray, curvature: float) -> np.ndarray:
    """The same trajectory by a NumPy ``rule``: a generator that takes (gradient, weights) and yields the step."""
    step_of, weights, path = rule(), START, []
    next(step_of)
    for gradient in gradients:
        step = step_of.send((gradient + curvature * weights, weights))
        weights = np.maximum(weights - step, 0.0)
        path.append(weights)
    return np.array(path)


def adam_rule(rate: float, decay: float) -> Iterator[Any]:
    mean, square, step, t = 0.0, 0.0, None, 0
    while True:
        gradient, _ = yield step
        t += 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        corrected_mean, corrected_square = mean / (1.0 - 0.9**t), square / (1.0 - 0.999**t)
        step = rate * t**-decay * corrected_mean / (np.sqrt(corrected_square) + 1e-8)


def sgd_rule(rate: float, alpha: float) -> Iterator[Any]:
    step, t = None, 0
    while True:
        gradient, _ = yield step
        step = rate * (t + 1.0) ** (alpha - 1.0) * gradient
        t += 1


def adagrad_rule(rate: float) -> Iterator[Any]:
    step, squares = None, 0.0
    while True:
        gradient, _ = yield step
        squares = squares + gradient**2
        step = rate * gradient / np.sqrt(squares)


def dog_rule(initial_distance: float, start: np.ndarray) -> Iterator[Any]:
    step, squares, distance = None, 0.0, initial_distance
    while True:
        gradient, weights = yield step
        squares += gradient @ gradient
        distance = max(distance, float(np.linalg.norm(weights - start)))
        step = distance / np.sqrt(squares) * gradient


def dowg_rule(initial_distance: float, start: np.ndarray) -> Iterator[Any]:
    step, squares, distance = None, 0.0, initial_distance
    while True:
        gradient, weights = yield step
        distance = max(distance, float(np.linalg.norm(weights - start)))
        squares += distance**2 * (gradient @ gradient)
        step = distance**2 / np.sqrt(squares) * gradient


def hot_dog_rule(initial_distance: float, start: np.ndarray) -> Iterator[Any]:
    step, mean, square, distance, t = None, 0.0, 0.0, np.zeros_like(start), 0
    while True:
        gradient, weights = yield step
        t += 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        if t == 1:
            scale = np.full_like(start, initial_distance)
        else:
            distance = 0.9 * distance + 0.1 * np.maximum(np.abs(weights - start), distance)
            scale = np.maximum(distance / (1.0 - 0.9**t), initial_distance)
        step = scale * (mean / (1.0 - 0.9**t)) / (np.sqrt(t * square / (1.0 - 0.999**t)) + 1e-8)


class TestTranscriptions:
    """Noisy steps with a drift that pushes some weights onto the boundary, projected after each step."""

    @pytest.mark.parametrize(
        ("optimizer", "rule"),
        [
            (SGD(0.1), lambda: sgd_rule(0.1, 1.0)),
            (SGD(0.3, alpha=0.5), lambda: sgd_rule(0.3, 0.5)),
            (Adam(0.2), lambda: adam_rule(0.2, 0.0)),
            (Adam(0.5, decay=0.3), lambda: adam_rule(0.5, 0.3)),
            (AdaGrad(0.7), lambda: adagrad_rule(0.7)),
            (DoG(1e-2), lambda: dog_rule(1e-2, START)),
            (DoWG(1e-2), lambda: dowg_rule(1e-2, START)),
            (HotDoG(1e-2), lambda: hot_dog_rule(1e-2, START)),
            (HotDoG(1.0), lambda: hot_dog_rule(1.0, START)),
        ],
        ids=lambda value: "rule" if callable(value) else repr(value),
    )
    def test_same_path(self, rng: np.random.Generator, optimizer: Any, rule: Callable[[], Iterator[Any]]) -> None:
        gradients = rng.normal(size=(NUM_STEPS, 4)) + np.array([4.0, -3.0, 0.5, 0.0])
        expected = transcribed(rule, gradients, curvature=0.2)
        np.testing.assert_allclose(trajectory(optimizer, gradients, curvature=0.2), expected, rtol=1e-9, atol=1e-11)

    def test_some_weights_are_clipped_on_the_way(self, rng: np.random.Generator) -> None:
        """So that the paths above do exercise the projection."""
        gradients = rng.normal(size=(NUM_STEPS, 4)) + np.array([4.0, -3.0, 0.5, 0.0])
        assert np.any(transcribed(lambda: adam_rule(0.2, 0.0), gradients, curvature=0.2) == 0.0)


class TestFirstStep:
    @pytest.mark.parametrize(
        ("optimizer", "size"), [(Adam(0.3), 0.3), (Adam(0.3, decay=0.5), 0.3), (HotDoG(0.02), 0.02)], ids=repr
    )
    def test_has_the_stated_size_against_the_gradient(
        self, rng: np.random.Generator, optimizer: Any, size: float
    ) -> None:
        gradient = rng.choice([-1.0, 1.0], 5) * 10.0 ** rng.uniform(-1.0, 5.0, 5)
        np.testing.assert_allclose(first_step(optimizer, gradient), -size * np.sign(gradient), rtol=1e-6)

    @pytest.mark.parametrize("optimizer", [DoG(0.02), DoWG(0.02)], ids=repr)
    def test_has_the_stated_length(self, rng: np.random.Generator, optimizer: Any) -> None:
        gradient = rng.normal(size=5)
        expected = -0.02 * gradient / np.linalg.norm(gradient)
        np.testing.assert_allclose(first_step(optimizer, gradient), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [10.0, 1e5])
@pytest.mark.parametrize("optimizer", [DoG(0.1), DoWG(0.1), HotDoG(0.1)], ids=repr)
def test_rescaling_all_gradients_changes_nothing(rng: np.random.Generator, optimizer: Any, scale: float) -> None:
    """Up to Hot DoG's epsilon of 1e-8 beside gradients of order one."""
    gradients = rng.choice([-1.0, 1.0], (NUM_STEPS, 4)) * rng.uniform(0.5, 2.0, (NUM_STEPS, 4))
    expected = trajectory(optimizer, gradients)
    np.testing.assert_allclose(trajectory(optimizer, scale * gradients), expected, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [SGD(0.1), Adam(0.1)], ids=repr)
def test_rates_scale_the_step(rng: np.random.Generator, optimizer: Any) -> None:
    """Twice the learning rate is twice the first step; guards against a rate that is ignored."""
    gradient = rng.normal(size=5)
    double = first_step(type(optimizer)(0.2), gradient)
    np.testing.assert_allclose(double, 2.0 * first_step(optimizer, gradient), rtol=1e-12)


class TestHotDoG:
    def test_distance_never_falls(self, rng: np.random.Generator) -> None:
        optimizer, weights, distances = HotDoG(0.05), jnp.asarray(START), []
        state, update = optimizer.init(weights), jax.jit(optimizer.update)
        for gradient in rng.normal(size=(30, 4)):
            steps, state = update(jnp.asarray(gradient), state, weights)
            weights = weights + steps
            distances.append(np.asarray(state.distance))
        assert np.all(np.diff(distances, axis=0) >= 0.0)
        assert np.all(distances[-1] > 0.0)

    def test_a_coordinate_that_starts_with_a_zero_gradient_gets_going(self) -> None:
        gradients = np.full((NUM_STEPS, 4), 3.0)
        gradients[0] = 0.0
        mean, square = 0.1 * 3.0 / (1.0 - 0.9**2), 0.001 * 9.0 / (1.0 - 0.999**2)
        expected = START - 0.05 * mean / np.sqrt(2.0 * square)
        np.testing.assert_allclose(trajectory(HotDoG(0.05), gradients)[1], expected, rtol=1e-9)

    def test_needs_the_weights(self) -> None:
        optimizer = HotDoG()
        with pytest.raises(ValueError, match="pass params"):
            optimizer.update(jnp.ones(2), optimizer.init(jnp.ones(2)))


class TestProdigy:
    def test_raises_its_rate_and_never_lowers_it(self) -> None:
        optimizer, weights = Prodigy(1e-3), jnp.asarray(START)
        state, update, rates = optimizer.init(weights), jax.jit(optimizer.update), [1e-3]
        for _ in range(60):
            steps, state = update(CURVATURES * (weights - OPTIMUM), state, weights)
            weights = weights + steps
            rates.append(float(state.estim_lr))
        assert np.all(np.diff(rates) >= 0.0)
        assert rates[-1] > 100.0 * rates[0]

    def test_follows_a_cosine_that_restarts_every_hundred_updates(self) -> None:
        """At a fixed point and under a constant gradient the rate is not raised, and only the schedule shows."""
        optimizer, weights = Prodigy(0.01), jnp.ones(2)
        gradient = jnp.array([2.0, -3.0])
        update = jax.jit(optimizer.update)
        state, steps = optimizer.init(weights), []
        for _ in range(150):
            step, state = update(gradient, state, weights)
            steps.append(np.asarray(step))
        cosine = 0.5 * (1.0 + np.cos(np.pi * (np.arange(150) % 100) / 100.0))
        np.testing.assert_allclose(steps, -0.01 * cosine[:, None] * np.array([1.0, -1.0]), rtol=1e-6)


class TestContract:
    def test_every_registered_optimizer_is_here(self) -> None:
        assert {type(build()) for build in CASES.values()} == set(OPTIMIZERS.values())

    def test_compiled_programs_tell_them_apart(self) -> None:
        """A compiled program is looked up by structure: two kinds with equal ones can be taken for each other."""
        structures = [jax.tree.structure(kind(1.0)) for kind in OPTIMIZERS.values()]
        assert not any(first == second for first, second in combinations(structures, 2))

    @every_optimizer
    def test_minimises_a_quadratic(self, build: Callable[..., Any]) -> None:
        """With one coordinate of the optimum on the boundary of the feasible set."""
        np.testing.assert_allclose(minimum_found(build(), type(build())), OPTIMUM, atol=1e-3)

    @every_optimizer
    def test_another_number_does_not_compile_again(self, build: Callable[..., Any]) -> None:
        first = first_step(build(), np.ones(5))
        num_compiled = _first_step._cache_size()
        second = first_step(build(0.5), np.ones(5))
        assert _first_step._cache_size() == num_compiled
        assert not np.allclose(first, second, rtol=1e-3)

    @every_optimizer
    def test_keeps_shape_and_type(self, build: Callable[..., Any]) -> None:
        optimizer, params = build(), jnp.ones(3)
        step, state = jax.eval_shape(optimizer.update, params, optimizer.init(params), params)
        assert step.shape == (3,)
        assert step.dtype == jnp.float64
        before, after = (
            jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), s) for s in (optimizer.init(params), state)
        )
        assert before == after  # a loop carries the state

    @pytest.mark.parametrize(
        "build",
        [pytest.param(build, id=name) for name, build in CASES.items()],
    )
    def test_survives_a_first_gradient_of_zero(self, build: Callable[..., Any]) -> None:
        """Two chains that both stay where they started give a gradient of exactly zero."""
        gradients = np.ones((NUM_STEPS, 4))
        gradients[:2] = 0.0
        path = trajectory(build(), gradients)
        np.testing.assert_array_equal(path[1], START)
        assert np.all(path[-1] < START)


@partial(jax.jit, static_argnames="kind")
def minimum_found(optimizer: Any, kind: type) -> jax.Array:
    """Weights after 1 500 projected steps on a quadratic."""
    del kind

    def step(_: jax.Array, carry: Any) -> Any:
        weights, state = carry
        updates, state = optimizer.update(CURVATURES * (weights - OPTIMUM), state, weights)
        return NonNegative().project(weights + updates, 10), state

    start = jnp.asarray(START)
    return jax.lax.fori_loop(0, 1_500, step, (start, optimizer.init(start)))[0]


class TestAsOptimizer:
    @every_optimizer
    def test_keeps_ours(self, build: Callable[..., Any]) -> None:
        optimizer = build()
        assert as_optimizer(optimizer) is optimizer

    @pytest.mark.parametrize(
        "given",
        [optax.adam(0.1), optax.chain(optax.clip(0.5), optax.sgd(0.1)), optax.contrib.prodigy(0.1)],
        ids=["adam", "chain", "extra-args"],
    )
    def test_wraps_optax(self, rng: np.random.Generator, given: optax.GradientTransformation) -> None:
        wrapped, params = as_optimizer(given), jnp.ones(3)
        assert isinstance(wrapped, OptaxOptimizer)
        gradient = jnp.asarray(rng.normal(size=3))
        expected, _ = given.update(gradient, given.init(params), params)
        step, _ = wrapped.update(gradient, wrapped.init(params), params)
        np.testing.assert_array_equal(step, expected)

    def test_the_same_transformation_compiles_once(self) -> None:
        given = optax.sgd(0.1)
        compiled = jax.jit(lambda optimizer, weights: optimizer.update(weights, optimizer.init(weights), weights)[0])
        for _ in range(2):
            compiled(as_optimizer(given), jnp.ones(2))
        assert compiled._cache_size() == 1

    @pytest.mark.parametrize(
        "nonsense",
        [Adam, HotDoG, 0.1, "adam", None, optax.adam],
        ids=["class", "hot-dog-class", "number", "name", "none", "factory"],
    )
    def test_refuses_anything_else(self, nonsense: Any) -> None:
        with pytest.raises(InputError, match=r"optimizer: got .*expected an optimiser such as .*Leave it out"):
            as_optimizer(nonsense)


@pytest.mark.parametrize("kind", [SGD, Adam, AdaGrad, DoG, DoWG, Prodigy, HotDoG], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("number", [0.0, -1.0, float("nan")])
def test_refuses_numbers_that_are_not_positive(kind: Any, number: float) -> None:
    with pytest.raises(InputError, match=rf"{kind.__name__} \w+: got {number}; expected a positive number"):
        kind(number)
