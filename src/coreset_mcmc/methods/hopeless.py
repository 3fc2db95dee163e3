"""How far below the best of several places another one counts for nothing.

Even a peak of its own has no mass to speak of so far below, unless it is wider by a factor of e^10 in every coordinate.
"""

from __future__ import annotations

DEPTH, DEPTH_PER_COORDINATE = 100.0, 10.0


def hopeless_depth(num_coordinates: int) -> float:
    """In nats."""
    return DEPTH + DEPTH_PER_COORDINATE * num_coordinates
