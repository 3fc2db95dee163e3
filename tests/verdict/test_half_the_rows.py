"""A coreset of half the rows is fitted by the programs of the whole one."""

import jax
import numpy as np
import pytest

import coreset_mcmc as cm

NUM_ROWS, NUM_FEATURES = 3_000, 3
COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(NUM_ROWS, NUM_FEATURES))
    return {"x": x, "y": (generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-x.sum(axis=1)))).astype(float)}


def fitted(table, size: int, method=None):
    model = cm.models.logistic_regression(NUM_FEATURES)
    return cm.fit(model, table, coreset_size=size, method=method, draws=200, progressbar=False, random_seed=3)


def test_trust_compiles_no_sampler_for_it(table):
    fit, programs = fitted(table, 200), []

    def listen(event: str, duration: float, **details) -> None:
        if event == COMPILED:
            programs.append(str(details.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        judged = fit.trust(num_coresets=1)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert np.isfinite(judged.size_sensitivity)
    large = ("by_kernel", "_steps", "_first_state", "_values_and_sums", "possible_values")
    assert not [name for name in programs if any(part in name for part in large)]


def test_rows_of_weight_zero_change_nothing(table):
    """Nor are they part of the coreset."""
    plain, roomy = (fitted(table, 80, cm.LeastSquares(num_draws=400, room=room)) for room in (0, 200))
    assert roomy.coreset.size == plain.coreset.size == 80
    np.testing.assert_array_equal(np.sort(roomy.coreset.indices), np.sort(plain.coreset.indices))
    np.testing.assert_allclose(roomy.coreset.weights, plain.coreset.weights, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(roomy.kl_estimate, plain.kl_estimate, rtol=1e-3, atol=1e-9)
    means = [fit.summary(round_to="none")["mean"].to_numpy() for fit in (plain, roomy)]
    spread = plain.summary(round_to="none")["sd"].to_numpy()
    assert np.all(np.abs(means[0] - means[1]) < 0.3 * spread)
