"""Rows that count once beside a Gaussian term, as they do in the sum over all rows.

An expansion to second order says little of a level with a handful of rows, or without a single event: what the prior
leaves open is wide, and the remainders of these rows are large. They are in the coreset for sure; at weight one they
say all that is to be said, and nothing has to be solved for them.
"""

from __future__ import annotations

import numpy as np

from coreset_mcmc.methods.least_squares.equations import Window
from coreset_mcmc.methods.least_squares.state import LeastSquaresState

HEAVY = 0.1
"""Nats: root mean square of a row's remainder from which it counts. A tenth of it left out is no more than noise."""
MOST_WHOLE = 0.5
"""Of the rows of a coreset."""


def with_whole_rows(state: LeastSquaresState, window: Window) -> LeastSquaresState:
    """Of the rows that were in for sure those whose remainders are large over a window's draws, the largest first."""
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(np.mean(window.values**2, axis=0, where=np.isfinite(window.values)))
    heaviness = np.where(state.is_whole & np.isfinite(spread), spread, 0.0)
    most = int(MOST_WHOLE * heaviness.size)
    bound = max(HEAVY, float(np.sort(heaviness)[-most - 1])) if most < heaviness.size else HEAVY
    return state._replace(is_whole=heaviness > bound)
