"""What a user calls a coordinate of the position: chains may move on other scales and under other names.

A parameter that the user sees and that rises or falls with the coordinate alone has the same ranks over draws, or the
opposite ones: a standardised coefficient and its term, the logarithm of sigma and sigma.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coreset_mcmc.core.trees import named_leaves
from coreset_mcmc.results.fit import Fit

SAME = 0.9999
"""The rank correlation of what is one parameter on two scales, but for ties of rounding."""


def users_name(fit: Fit, coordinate: str) -> str:
    """The name in the posterior of what a coordinate determines by itself; its own name if there is no such thing."""
    moved = dict(_columns({name: np.asarray(leaf) for name, leaf in named_leaves(fit.positions(), "theta").items()}))
    if coordinate not in moved:
        return coordinate
    ranks = _ranks(moved[coordinate])
    for name, variable in fit.posterior.data_vars.items():
        values = variable.transpose("chain", "draw", ...)
        flat = values.to_numpy().reshape(values.sizes["chain"] * values.sizes["draw"], -1)
        labels = [values.coords[dim].to_numpy() if dim in values.coords else None for dim in values.dims[2:]]
        for column, place in zip(flat.T, np.ndindex(*values.shape[2:]), strict=True):
            if np.ptp(column) > 0 and abs(float(np.mean(ranks * _ranks(column)))) > SAME:
                inner = [str(part if label is None else label[part]) for label, part in zip(labels, place, strict=True)]
                return f"{name}[{', '.join(inner)}]" if inner else str(name)
    return coordinate


def _columns(leaves: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    for name, leaf in leaves.items():
        inner = leaf.shape[2:]
        flat = leaf.reshape(leaf.shape[0] * leaf.shape[1], -1)
        for column, place in zip(flat.T, np.ndindex(*inner), strict=True):
            yield (f"{name}{list(place)}" if inner else name), column


def _ranks(values: np.ndarray) -> np.ndarray:
    """With mean zero and variance one."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)
    ranks -= ranks.mean()
    return ranks / max(float(ranks.std()), 1e-300)
