"""How to compile a program that runs once or twice: soon rather than fast."""

from __future__ import annotations

from functools import cache

import jax

QUICK: dict[str, bool | int | str] = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Options of XLA on a CPU that cut the time of compilation to a third."""


@cache
def quick_compilation() -> dict[str, bool | int | str]:
    """Those options, or none where this XLA does not know them."""
    if jax.default_backend() != "cpu":
        return {}
    try:
        jax.jit(lambda: 0, compiler_options=QUICK).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return QUICK
