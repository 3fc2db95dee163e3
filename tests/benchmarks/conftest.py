"""Data that stand in for the paper's, which is not in the repository."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def counts_like_the_papers(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Eight standardised features and large counts, as in the bike-share data, but 500 rows."""
    x = rng.normal(size=(500, 8))
    rate = np.logaddexp(0.0, 40.0 + 15.0 * x[:, 0] + 5.0 * x[:, 1])
    return {"x": x, "y": rng.poisson(rate).astype(float)}
