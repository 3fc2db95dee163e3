"""Counts like those of the paper's Poisson regression, made up: hourly rentals and eight standardised features."""

from __future__ import annotations

import numpy as np


def bike_share_table(size: int = 2_000) -> dict[str, np.ndarray]:
    """Mean and spread of the counts are those of the paper's table (189 and 181), far beyond what the prior expects."""
    generator = np.random.default_rng(2013)
    x = generator.normal(size=(size, 8))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    slopes = np.array([60.0, -40.0, 30.0, 10.0, -10.0, 5.0, -5.0, 0.0])
    predictor = 160.0 + x @ slopes + 120.0 * generator.standard_t(6, size=size)
    return {"x": x, "y": generator.poisson(np.logaddexp(0.0, predictor)).astype(float)}
