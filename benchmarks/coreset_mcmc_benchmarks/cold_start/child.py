"""One process from its first import on: ``python -m coreset_mcmc_benchmarks.cold_start.child TASK``.

JAX tells of every program that is traced, lowered and compiled. Several are compiled at the same time and beside other
work, so that their seconds add up to more than have passed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "compiling",
}
NUM_FEATURES = 10
KILOBYTE = 1024


class Watch:
    """Stages, one after the other."""

    def __init__(self) -> None:
        self.stages: list[dict[str, Any]] = []
        self.programs: list[dict[str, Any]] = []
        self._now: dict[str, float] = {}

    def listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        """What JAX tells."""
        kind = EVENTS.get(event)
        if kind is None:
            return
        self._now[kind] = self._now.get(kind, 0.0) + duration_secs
        if kind == "compiling":
            self._now["programs"] = self._now.get("programs", 0) + 1
            self.programs.append({"name": str(kwargs.get("fun_name", "")), "seconds": duration_secs})

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Time what it does."""
        self._now = {}
        began, processor = time.perf_counter(), time.process_time()
        result = work()
        took = {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - processor}
        self.stages.append({"stage": name, **took, **dict.fromkeys(EVENTS.values(), 0.0), "programs": 0} | self._now)
        return result


def simulated(num_rows: int, seed: int) -> dict[str, np.ndarray]:
    """Rows of a logistic regression."""
    generator = np.random.default_rng([num_rows, seed])
    x = generator.normal(size=(num_rows, NUM_FEATURES))
    chance = 1.0 / (1.0 + np.exp(2.0 - x @ np.full(NUM_FEATURES, 0.4)))
    return {"x": x, "y": (generator.random(num_rows) < chance).astype(float)}


def main(num_rows: int) -> None:
    """Print the stages and the programs of the first fit."""
    watch, table, another = Watch(), simulated(num_rows, 1), simulated(num_rows, 2)

    def imported() -> Any:
        import coreset_mcmc  # noqa: PLC0415 - is what is timed

        return coreset_mcmc

    cm = watch.run("import coreset_mcmc", imported)
    import jax  # noqa: PLC0415 - imported by now

    jax.monitoring.register_event_duration_secs_listener(watch.listen)

    def fit(data: dict[str, np.ndarray], seed: int) -> Any:
        return cm.fit(cm.models.logistic_regression(NUM_FEATURES), data, random_seed=seed, progressbar=False)

    fitted = watch.run("first fit", lambda: fit(table, 1))
    programs = sorted(watch.programs, key=lambda program: -program["seconds"])
    watch.run("another seed", lambda: fit(table, 2))
    watch.run("another table of the same shape", lambda: fit(another, 3))
    watch.run("first trust()", fitted.trust)
    watch.run("trust() again, another seed", lambda: fitted.trust(random_seed=5))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE / 1e9
    print(json.dumps({"stages": watch.stages, "programs": programs, "peak_gigabytes": peak}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
