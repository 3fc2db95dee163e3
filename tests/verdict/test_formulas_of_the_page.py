"""Numbers that docs/trust.md gives for shifted and narrow Gaussians."""

from __future__ import annotations

import math

import numpy as np
import pytest

from coreset_mcmc.verdict.refits import compare

COUNT = 20_000


@pytest.mark.parametrize(("nats", "shift"), [(0.1, 0.45), (1.0, 1.4), (0.0094, 0.14)])
def test_a_kl_bounds_the_shift_of_a_mean(nats, shift):
    """KL(N(s, 1) || N(0, 1)) = s^2 / 2, and any other difference only adds to it."""
    assert math.sqrt(2 * nats) == pytest.approx(shift, abs=0.02)


@pytest.mark.parametrize("variance", [0.5, 0.8])
def test_half_the_variance_is_too_low_for_a_narrow_posterior(variance, rng):
    draws = rng.normal(0.0, math.sqrt(variance), COUNT)
    log_ratios = -0.5 * draws**2 + 0.5 * draws**2 / variance
    half_variance = 0.5 * np.var(log_ratios)
    assert half_variance == pytest.approx((1 - variance) ** 2 / 4, rel=0.1)
    assert half_variance < (variance - 1 - math.log(variance)) / 2


@pytest.mark.parametrize(("error", "rhat"), [(0.39, 1.05), (1.0, 1.3)])
def test_agreement_of_two_coresets_that_misplace_a_mean(error, rhat, rng):
    """Errors of that size which know nothing of each other are the square root of two times as far apart."""
    first, second = rng.normal(size=(2, 4, COUNT // 4))
    found = compare([{"x": first}, {"x": second + math.sqrt(2) * error}]).rhat
    assert found == pytest.approx(math.sqrt(1 + 2 * error**2 / 3), abs=0.02)
    assert found == pytest.approx(rhat, abs=0.03)
