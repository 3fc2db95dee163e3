"""Programs that count, hang, raise or end their process, for tests of engines; sent to workers by value."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.data.task import Program

cloudpickle.register_pickle_by_value(sys.modules[__name__])

NUM_ROWS = 5 * 16 * 256 + 1_000
"""Six parts of leaves of 256 rows, the last of them short."""


def few_leaves(source: Any, engine: Any = None) -> Rows:
    """Many parts although there are few rows."""
    return Rows(source, engine, Layout(source.size, 256))


def logistic_arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(NUM_ROWS, 3)).astype(np.float32)
    return {"x": x, "y": rng.random(NUM_ROWS) < 0.3}


def logistic_rows(engine: Any = None) -> Rows:
    return few_leaves(ArraySource(logistic_arrays()), engine)


@dataclass(frozen=True, eq=False)
class Opaque:
    """Like a model: equal to nothing but itself, with a closure that no module has."""

    log_likelihood: Any


def opaque_model(factor: float = 1.0) -> Opaque:
    def log_likelihood(position: Any, batch: Any) -> Any:
        predictor = factor * (batch["x"] @ position)
        return batch["y"] * predictor - jnp.logaddexp(0.0, predictor)

    return Opaque(log_likelihood)


@dataclass(frozen=True)
class Derivatives:
    """The log-likelihood and its gradient, summed over rows."""

    model: Opaque

    def __call__(self, batch: Any, weights: Any, position: Any) -> Any:
        def total(position: Any) -> Any:
            return jnp.dot(weights, self.model.log_likelihood(position, batch))

        return jax.value_and_grad(total)(position)


@dataclass(frozen=True)
class Scores:
    """A score of each row."""

    model: Opaque

    def __call__(self, batch: Any, weights: Any, position: Any) -> Any:
        return (jnp.exp(-self.model.log_likelihood(position, batch)),)


@dataclass(frozen=True)
class Trouble(Program):
    """The sum of y; at one leaf there is trouble."""

    kind: str
    at_leaf: int
    folder: Path
    times: int = 1

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Any:
        if leaf.number == self.at_leaf:
            self._make_trouble()
        return np.sum(leaf.batch["y"], dtype=np.int64)

    def merge(self, one: Any, other: Any) -> Any:
        return one + other

    def _make_trouble(self) -> None:
        if self.kind == "raise":
            raise ZeroDivisionError("a model that divides by zero")
        for number in range(self.times):
            try:
                (self.folder / f"{self.kind} {number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "no file":
                raise FileNotFoundError("not here")
            while not (self.folder / "released").exists():
                time.sleep(0.02)
            return
