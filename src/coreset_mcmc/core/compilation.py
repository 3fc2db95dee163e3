"""How to compile programs that run a few times only: soon rather than fast."""

from __future__ import annotations

from functools import cache

import jax

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
