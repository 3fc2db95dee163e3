"""Optimisers of the weights, on optax's interface: ``init(params)`` and ``update(gradients, state, params)``.

Each is a small pytree whose numbers are arguments of the compiled program, so trying another learning rate does not
compile again. The arithmetic is optax's wherever optax has the method. Any ``optax.GradientTransformation`` is accepted
too (:func:`as_optimizer`); its numbers are then part of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax

from coreset_mcmc.core.errors import InputError, require_positive
from coreset_mcmc.core.types import pytree, static
from coreset_mcmc.methods.coreset_mcmc.hot_dog import HotDoG

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "DoG",
    "DoWG",
    "HotDoG",
    "OptaxOptimizer",
    "Optimizer",
    "Prodigy",
    "as_optimizer",
    "power_schedule",
]


class Optimizer(Protocol):
    """The part of ``optax.GradientTransformation`` that is used."""

    def init(self, params: jax.Array) -> Any: ...

    def update(self, updates: jax.Array, state: Any, params: jax.Array | None = None) -> tuple[jax.Array, Any]: ...


class _FromOptax:
    """``init`` and ``update`` by the optax transformation that ``self.transformation()`` builds while tracing."""

    def transformation(self) -> optax.GradientTransformation:
        raise NotImplementedError

    def init(self, params: jax.Array) -> Any:
        return self.transformation().init(params)

    def update(self, updates: jax.Array, state: Any, params: jax.Array | None = None) -> tuple[jax.Array, Any]:
        result: tuple[jax.Array, Any] = self.transformation().update(updates, state, params)
        return result


def power_schedule(scale: Any, exponent: Any, offset: int = 1) -> optax.Schedule:
    """scale * t^(-exponent), with t = ``offset`` at the first update."""
    return lambda count: scale * (count + float(offset)) ** (-exponent)


@pytree
@dataclass(frozen=True)
class SGD(_FromOptax):
    """Plain steps gamma (t + 1)^(alpha - 1), t = 0, 1, ... (section 3.4 of the paper).

    Args:
        learning_rate: gamma; the paper uses N / (10 M) on the Gaussian model.
        alpha: 1 for full-data gradients (a constant step), 0.5 for minibatches.
    """

    learning_rate: float
    alpha: float = 1.0

    def __post_init__(self) -> None:
        require_positive("SGD learning_rate", self.learning_rate)

    def transformation(self) -> optax.GradientTransformation:
        return optax.sgd(power_schedule(self.learning_rate, 1.0 - self.alpha))


@pytree
@dataclass(frozen=True)
class Adam(_FromOptax):
    """Adam with rate alpha_0 t^(-decay) (appendix C.2 of the paper); decay = 0 for full-data gradients."""

    learning_rate: float
    decay: float = 0.0

    def __post_init__(self) -> None:
        require_positive("Adam learning_rate", self.learning_rate)

    def transformation(self) -> optax.GradientTransformation:
        return optax.adam(power_schedule(self.learning_rate, self.decay), b1=0.9, b2=0.999, eps=1e-8)


@pytree
@dataclass(frozen=True)
class AdaGrad(_FromOptax):
    """AdaGrad: steps divided by the root of the sum of squared gradients so far."""

    learning_rate: float

    def __post_init__(self) -> None:
        require_positive("AdaGrad learning_rate", self.learning_rate)

    def transformation(self) -> optax.GradientTransformation:
        return optax.adagrad(self.learning_rate, initial_accumulator_value=0.0, eps=1e-16)


@pytree
@dataclass(frozen=True)
class DoG(_FromOptax):
    """Distance over gradients (Ivgi et al. 2023), from ``optax.contrib``."""

    initial_distance: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("DoG initial_distance", self.initial_distance)

    def transformation(self) -> optax.GradientTransformation:
        return optax.contrib.dog(init_step=("distance", self.initial_distance), eps=1e-30)


@pytree
@dataclass(frozen=True)
class DoWG(_FromOptax):
    """Distance over weighted gradients (Khaled et al. 2023), from ``optax.contrib``."""

    initial_distance: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("DoWG initial_distance", self.initial_distance)

    def transformation(self) -> optax.GradientTransformation:
        return optax.contrib.dowg(init_estim_sq_dist=self.initial_distance**2, eps=1e-30)


@pytree
@dataclass(frozen=True)
class Prodigy(_FromOptax):
    """Prodigy (Mishchenko and Defazio 2023), from ``optax.contrib``, with a cosine restart every 100 updates."""

    initial_rate: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("Prodigy initial_rate", self.initial_rate)

    def transformation(self) -> optax.GradientTransformation:
        def cosine(count: jax.Array) -> jax.Array:
            return 0.5 * (1.0 + jnp.cos(jnp.pi * (count % 100) / 100.0))

        return optax.contrib.prodigy(learning_rate=cosine, estim_lr0=self.initial_rate)

    def update(self, updates: jax.Array, state: Any, params: jax.Array | None = None) -> tuple[jax.Array, Any]:
        """Optax divides zero by zero at a first gradient of zero (no chain moved): then nothing changes."""
        steps, moved = super().update(updates, state, params)
        is_flat = jnp.all(updates == 0.0)
        result: tuple[jax.Array, Any] = jax.tree.map(
            lambda new, old: jnp.where(is_flat, old, new), (steps, moved), (updates, state)
        )
        return result


@pytree
@dataclass(frozen=True)
class OptaxOptimizer(_FromOptax):
    """A user's optax transformation, as a constant of the compiled program."""

    given: optax.GradientTransformation = static()

    def transformation(self) -> optax.GradientTransformation:
        return self.given


def as_optimizer(optimizer: Any) -> Optimizer:
    """Ours as they are, optax's wrapped, anything else refused."""
    if isinstance(optimizer, optax.GradientTransformation):
        return OptaxOptimizer(optimizer)
    is_ours = hasattr(optimizer, "init") and hasattr(optimizer, "update")
    if isinstance(optimizer, type) or not is_ours:
        raise InputError(
            "optimizer",
            got=repr(optimizer),
            expected="an optimiser such as cm.optimizers.Adam(0.1), or an optax.GradientTransformation",
            fix="Leave it out for Hot DoG, which needs no learning rate.",
        )
    result: Optimizer = optimizer
    return result
