"""The hot-start test against a least-squares fit by NumPy, and the rules for when it may end."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.coreset_mcmc.hot_start import HotStart, HotStartState, drift

PROPERTY = settings(deadline=None, max_examples=50, derandomize=True)

CAPACITY = 300


def transcribed_drift(trace: np.ndarray) -> float:
    """R of one chain: gap between the means of the last two thirds over the larger residual deviation."""
    length = -(-len(trace) // 3)
    segments = trace[len(trace) - 2 * length : len(trace) - length], trace[len(trace) - length :]
    deviations = []
    for segment in segments:
        time = np.arange(length)
        residuals = segment - np.polyval(np.polyfit(time, segment, 1), time)
        deviations.append(np.sqrt(np.sum(residuals**2) / (length - 2)))
    return abs(segments[0].mean() - segments[1].mean()) / max(deviations)


compiled_drift = jax.jit(drift)


def drift_of(traces: np.ndarray) -> np.ndarray:
    """Through a trace with spare room, filled with rubbish that must not be read."""
    padded = np.full((CAPACITY, traces.shape[1]), 1e6)
    padded[: len(traces)] = traces
    return np.asarray(compiled_drift(jnp.asarray(padded), len(traces)))


@jax.jit
def _run(hot_start: HotStart, traces: jax.Array, dimension: int) -> jax.Array:
    def step(state: HotStartState, log_densities: jax.Array) -> tuple[HotStartState, jax.Array]:
        state = hot_start.update(state, log_densities, dimension)
        return state, state.is_over

    return jax.lax.scan(step, hot_start.init(traces.shape[1], traces.dtype), traces)[1]


def run(traces: np.ndarray, dimension: int, **options: float) -> np.ndarray:
    """Whether the hold is over after each iteration (T,), for three chains, or for one thrice.

    Always run to the same length and cut afterwards, so that the tests share one compiled program.
    """
    padded = np.zeros((CAPACITY, 3))
    padded[: len(traces)] = traces
    hot_start = HotStart(**{"max_iterations": 2 * CAPACITY} | options)
    return np.asarray(_run(hot_start, jnp.asarray(padded), dimension))[: len(traces)]


def first_over(*arguments: object, **options: float) -> int:
    """The iteration, counted from 1, at which the hold ends."""
    return int(np.flatnonzero(run(*arguments, **options))[0]) + 1


ALTERNATING = np.tile([1.0, -1.0], CAPACITY // 2)[:, None]
"""Equal means and a residual deviation near 1 in every segment of even length."""


class TestDrift:
    @PROPERTY
    @given(
        number=st.integers(0, 2**31),
        count=st.integers(9, CAPACITY),
        trend=st.floats(-5.0, 5.0),
        offset=st.floats(-1e6, 1e6),
    )
    def test_matches_numpy(self, number: int, count: int, trend: float, offset: float) -> None:
        noise = np.random.default_rng(number).normal(size=(count, 3))
        traces = noise * [1.0, 0.1, 30.0] + trend * np.arange(count)[:, None]
        expected = [transcribed_drift(trace) for trace in traces.T]
        np.testing.assert_allclose(drift_of(traces + offset), expected, rtol=1e-6, atol=1e-6)

    def test_by_hand(self) -> None:
        """Means 1 and 3; residuals 1, -2, 1 about flat lines, with one degree of freedom; the first third is unread."""
        first, second = np.array([2.0, -1.0, 2.0]), np.array([4.0, 1.0, 4.0])
        trace = np.concatenate([np.full(3, 1e3), first, second])
        np.testing.assert_allclose(drift_of(trace[:, None]), 2.0 / np.sqrt(6.0), rtol=1e-12)

    def test_a_trend_is_not_counted_as_noise(self) -> None:
        """On a noisy line the residual deviation is that of the noise: a plain deviation would give R near 1.7."""
        noise = np.tile([1.0, -1.0], 45)
        assert drift_of((np.arange(90.0) + noise)[:, None])[0] > 20.0

    def test_constant_traces_do_not_drift(self) -> None:
        np.testing.assert_array_equal(drift_of(np.full((30, 2), -1234.5)), 0.0)

    def test_a_trace_without_noise_drifts_infinitely(self) -> None:
        step = np.repeat([0.0, 1.0, 2.0], 10)
        assert drift_of(step[:, None])[0] == np.inf


class TestHotStart:
    def test_a_stationary_trace_passes_at_the_first_test(self) -> None:
        assert first_over(ALTERNATING, 5) == 30

    @pytest.mark.statistical
    def test_stationary_noise_passes(self, rng: np.random.Generator) -> None:
        """Means of 100 differ by sqrt(2/100) times noise; two of three chains beyond 3.5 deviations: below 1e-6."""
        assert run(rng.normal(size=(CAPACITY, 3)), 5, interval=CAPACITY)[-1]

    def test_a_strong_trend_does_not_pass(self, rng: np.random.Generator) -> None:
        """The gap of the means is 10 or more at every test, the noise 1: R stays above 0.5 by over ten deviations."""
        traces = np.arange(CAPACITY)[:, None] + rng.normal(size=(CAPACITY, 3))
        assert not run(traces, 2).any()

    def test_the_median_chain_decides(self) -> None:
        still = ALTERNATING[:90, 0]
        climbing = np.arange(90.0) + 0.1 * still
        assert run(np.column_stack([still, still, climbing]), 2).any()
        assert not run(np.column_stack([still, climbing, climbing]), 2).any()

    def test_the_cap_starts_training_anyway(self) -> None:
        traces = np.arange(60.0)[:, None] ** 2
        np.testing.assert_array_equal(run(traces, 2, max_iterations=41), np.arange(1, 61) >= 41)

    @pytest.mark.parametrize(("dimension", "expected"), [(1, 30), (10, 30), (11, 60), (20, 60), (21, 90)])
    def test_not_before_three_times_the_dimension(self, dimension: int, expected: int) -> None:
        assert first_over(ALTERNATING, dimension) == expected

    def test_only_at_multiples_of_the_interval(self) -> None:
        """A jump spoils the first test. It has left the window by iteration 54, but nobody looks until 60."""
        trace = ALTERNATING.copy()
        trace[:17] += 100.0
        assert drift_of(trace[:30])[0] > 0.5
        assert drift_of(trace[:54])[0] <= 0.5
        assert first_over(trace, 2) == 60

    def test_the_threshold_counts(self) -> None:
        trace = ALTERNATING[:30] + np.repeat([0.0, 0.0, 0.6], 10)[:, None]
        value = float(drift_of(trace)[0])
        assert run(trace, 2, threshold=1.001 * value)[-1]
        assert not run(trace, 2, threshold=0.999 * value)[-1]

    def test_once_over_it_stays_over_and_the_clock_stands(self) -> None:
        traces = np.concatenate([ALTERNATING[:30], 1e3 * np.arange(90.0)[:, None]])
        np.testing.assert_array_equal(run(traces, 2), np.arange(1, 121) >= 30)
        hot_start = HotStart(max_iterations=60)
        state = hot_start.init(1, jnp.dtype(float))._replace(num_iterations=jnp.int32(30), is_over=jnp.array(True))
        assert jax.jit(hot_start.update, static_argnums=2)(state, jnp.ones(1), 2).num_iterations == 30

    def test_a_chain_outside_the_support_does_not_pass(self) -> None:
        traces = ALTERNATING[:30].copy()
        traces[20] = -np.inf
        assert not run(traces, 2).any()

    def test_too_few_values_for_a_line_do_not_pass(self) -> None:
        """Two points lie on their line: there is no residual to compare with."""
        traces = np.array([0.1, 0.7, 1.3, 2.1, 3.4, 4.9])[:, None]
        assert not run(traces, 1, interval=1).any()

    def test_another_threshold_does_not_compile_again(self) -> None:
        compiled = jax.jit(lambda hot_start, state: hot_start.update(state, jnp.ones(2), 3))
        for threshold in (0.5, 0.1):
            hot_start = HotStart(threshold, max_iterations=10)
            compiled(hot_start, hot_start.init(2, jnp.dtype(float)))
        assert compiled._cache_size() == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"threshold": 0.0}, "HotStart threshold: got 0.0"),
            ({"max_iterations": 0}, "HotStart max_iterations: got 0.*burn_in=0"),
            ({"max_iterations": 1e4}, r"HotStart max_iterations: got 10000\.0; expected a whole number"),
            ({"interval": 0}, "HotStart interval: got 0"),
        ],
    )
    def test_refuses_bad_numbers(self, options: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            HotStart(**options)
