"""How busy others are: read from the system, waited for, and a reason to run again."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pytest

from coreset_mcmc_benchmarks.speed import idle

needs_proc = pytest.mark.skipif(not idle.STAT.exists(), reason="the system does not count processor time in /proc")


def test_busy_time_is_all_but_idle_and_waiting(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 5000 700 4 5 6 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    ticks = 100 + 20 + 30 + 4 + 5 + 6
    assert idle.busy_seconds(stat) == pytest.approx(ticks / idle.os.sysconf("SC_CLK_TCK"))


@pytest.mark.parametrize("text", [None, "", "cpu one two three four five six seven eight"])
def test_without_a_count_the_load_is_unknown(tmp_path, text):
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    assert math.isnan(idle.busy_seconds(stat))
    with idle.watched(lambda: math.nan) as load:
        pass
    assert math.isnan(load.others)
    assert idle.wait_until_idle(lambda: math.nan, patience=0.0)


def test_own_time_is_not_that_of_others(monkeypatch):
    clock = iter([10.0, 14.0])
    monkeypatch.setattr(idle.time, "perf_counter", lambda: next(clock))
    busy, own = iter([100.0, 107.0]), iter([1.0, 6.0])
    with idle.watched(lambda: next(busy), lambda: next(own)) as load:
        pass
    assert load.others == pytest.approx((7.0 - 5.0) / 4.0)


@needs_proc
def test_a_process_that_works_meanwhile_is_seen(monkeypatch):
    """It is a child that has not ended, which counts as somebody else."""
    monkeypatch.setattr(idle, "LOOK_SECONDS", 0.5)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        time.sleep(0.2)
        others = idle.others_now()
        other.kill()
    assert others > 0.2


def test_waiting_ends_when_the_machine_is_idle_or_patience_is_over():
    loads = iter([0.9, 0.4, 0.1, 0.9])
    assert idle.wait_until_idle(lambda: next(loads), patience=60.0)
    assert next(loads) == 0.9
    assert not idle.wait_until_idle(lambda: 0.9, patience=0.0)


@pytest.mark.parametrize(
    ("loads", "num_runs", "kept"),
    [([0.1], 1, 0), ([math.nan], 1, 0), ([0.8, 0.1], 2, 1), ([0.8, 0.4, 0.6], 3, 1)],
    ids=["idle", "unknown", "once more", "always busy"],
)
def test_a_disturbed_run_is_made_again_but_not_for_ever(loads, num_runs, kept, monkeypatch):
    waits, runs = [], []

    def with_load(run):
        row = run()
        return row | {"other_load": loads[row["number"]]}

    def run():
        runs.append(len(runs))
        return {"number": runs[-1]}

    monkeypatch.setattr(idle, "with_load", with_load)
    row = idle.undisturbed(run, lambda: waits.append(True))
    assert (len(runs), len(waits), row["number"]) == (num_runs, num_runs, kept)


def test_a_row_tells_the_load():
    row = idle.with_load(lambda: {"seed": 1})
    assert set(row) == {"seed", "load_before", "load_after", "other_load"}


@needs_proc
def test_memory_of_workers_counts():
    """A small process, started by a larger one, with a worker that holds 150 MB for a second and a half."""
    worker = "data = bytearray(b'x') * 150_000_000; import time; time.sleep(1.5)"
    code = f"""
import subprocess, sys
from coreset_mcmc_benchmarks.speed.memory import peak_memory
for has_workers in (False, True):
    with peak_memory(has_workers) as peak:
        subprocess.run([sys.executable, "-c", {worker!r}], check=True)
    print(peak.megabytes)
"""
    made = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    alone, together = map(float, made.stdout.split())
    assert 0 < alone < 120
    assert together > 150
