"""Draws of any fit or sampler as arrays with leading axes (chain, draw)."""

from __future__ import annotations

import numpy as np

from coreset_mcmc.results.fit import Fit

Draws = dict[str, np.ndarray]
"""Variables with leading axes (chain, draw)."""


def draws_of(fitted: Fit) -> Draws:
    """Every variable of a fit."""
    return {str(name): values.to_numpy() for name, values in fitted.posterior.data_vars.items()}


def flattened(draws: Draws) -> np.ndarray:
    """(chain, draw, d), variables in alphabetical order as JAX flattens them."""
    return np.concatenate([draws[name].reshape(*draws[name].shape[:2], -1) for name in sorted(draws)], axis=-1)


def continuous(draws: Draws) -> np.ndarray:
    """The same without what is discrete."""
    return flattened({name: values for name, values in draws.items() if np.issubdtype(values.dtype, np.floating)})
