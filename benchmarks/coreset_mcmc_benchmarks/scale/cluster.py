"""Dask beside one process: an empty pass, and the processor time of a pass with value, gradient and Hessian.

Two worker processes of one thread each on this machine; they start anew, read the files in the first pass and, unless
their memory is too small, keep the rows for the next.

    python -m coreset_mcmc_benchmarks.scale.cluster FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coreset_mcmc_benchmarks.scale.files import COLUMNS, NUM_FEATURES

TICKS = os.sysconf("SC_CLK_TCK")
NUM_PASSES = 3


def main(folder: Path) -> dict[str, Any]:
    """Seconds and processor seconds of both."""
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415 - in a process of its own

    import coreset_mcmc as cm  # noqa: PLC0415
    from coreset_mcmc.data.rows import Rows  # noqa: PLC0415
    from coreset_mcmc_benchmarks.scale.engine_overhead import measure  # noqa: PLC0415

    scan = cm.scan_parquet(folder / "*.parquet", columns=COLUMNS)
    found: dict[str, Any] = {"rows": scan.size, "load": os.getloadavg()[0]}
    stream = _passes(Rows(scan), [os.getpid()])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        processes = [os.getpid(), *client.run(os.getpid).values()]
        engine = cm.Dask(client)
        found["empty_pass_of_100_parts"] = measure(engine)
        dask = _passes(Rows(scan, engine), processes)
    for name, passes in (("stream", stream), ("dask", dask)):
        found[f"{name}_seconds"], found[f"{name}_processor_seconds"] = zip(*passes, strict=True)
    return found


def _passes(rows: Any, processes: list[int]) -> list[tuple[float, float]]:
    """Wall clock and processor time of all processes for each of several passes, after one that compiles."""
    import coreset_mcmc as cm  # noqa: PLC0415
    from coreset_mcmc.posterior.by_passes import FullPosterior  # noqa: PLC0415

    model = cm.models.logistic_regression(NUM_FEATURES)
    position = {"beta": np.zeros(NUM_FEATURES + 1)}
    posterior, measured = FullPosterior(model, rows, position), []
    with jax.enable_x64(True):
        for number in range(1 + NUM_PASSES):
            began, used = time.perf_counter(), _processor_seconds(processes)
            posterior.derivatives(np.full(NUM_FEATURES + 1, 0.01 * number), "a pass")
            measured.append((time.perf_counter() - began, _processor_seconds(processes) - used))
    return measured[1:]


def _processor_seconds(processes: list[int]) -> float:
    """User and system time so far; Linux only."""
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(part[11]) + int(part[12]) for part in fields) / TICKS


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
