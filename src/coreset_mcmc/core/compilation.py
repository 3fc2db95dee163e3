"""How to compile: programs that run a few times soon rather than fast, and programs ahead of their use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

from coreset_mcmc.core.precision import double_precision

Options = dict[str, bool | int | str]


@cache
def quick_compilation(optimization_level: int) -> Options:
    """Options of XLA that bring down the time of compilation; none where this XLA knows none.

    On a CPU, level 1 halves it and a step may then take up to a half longer; level 0 cuts it to a third.
    """
    if jax.default_backend() != "cpu":
        return {}
    options: Options = {"xla_backend_optimization_level": optimization_level, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


def compiler(traced: Any) -> Callable[[], None]:
    """Compiles what was traced."""

    @double_precision
    def compile_it() -> None:
        traced.lower().compile()

    return compile_it
