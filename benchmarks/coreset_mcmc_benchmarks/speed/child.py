"""One task in a process of its own, from data in memory on.

Started by its path and not as a module, so that nothing of the package, nor JAX, is imported before the clock starts:
``python child.py TASK.json``. The task names the data, the libraries a person would import, and where the answer goes.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np


def main(path: str) -> None:
    """Load, start the clock, import, run, answer."""
    task = json.loads(Path(path).read_text())
    with np.load(task["data"]) as stored:
        data = {name: stored[name] for name in stored.files}
    began = time.perf_counter()
    for library in task["libraries"]:
        importlib.import_module(library)
    import_seconds = time.perf_counter() - began
    work = getattr(importlib.import_module("coreset_mcmc_benchmarks.speed.measure"), task["work"])
    Path(task["answer"]).write_text(json.dumps(work(task, data, import_seconds)))


if __name__ == "__main__":
    sys.path.pop(0)
    main(sys.argv[1])
