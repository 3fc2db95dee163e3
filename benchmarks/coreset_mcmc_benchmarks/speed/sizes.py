"""Sizes that a model and its peers share; apart from the models, so that a peer loads nothing of ours."""

from __future__ import annotations

import numpy as np

Data = dict[str, np.ndarray]

NUM_PLAYERS, NUM_GROUPS = 40, 50


def dimension(model: str, data: Data) -> int:
    """Number of parameters."""
    fixed = {"mixture": 6, "unidentified": 3, "bradley-terry": NUM_PLAYERS}
    if model in fixed:
        return fixed[model]
    extra = {"linear": 2, "hierarchical": NUM_GROUPS + 2}.get(model, 1)
    return int(data["x"].shape[1]) + extra
