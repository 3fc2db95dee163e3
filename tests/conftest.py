"""Two tiers, seeds that can be swept, double precision as the package itself uses it, memory that stays in bounds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from tests.helpers import worker_memory
from tests.helpers.bike_share import bike_share_table
from tests.helpers.longest_first import keep_order, sort_longest_first
from tests.helpers.quick_compilation import use_quick_compilation

PEAKS = pytest.StashKey[dict[str, int]]()
"""Of each process by its name, collected by the one that prints."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="everything; without it, only the fast tier")
    parser.addoption("--slow", action="store_true", help="everything, tests that take minutes each and variants too")
    parser.addoption("--seeds", type=int, default=1, help="repeat statistical tests with this many seeds")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("CORESET_MCMC_CACHE", "off")  # tests keep nothing in the home folder
    config.stash[PEAKS] = {}
    keep_order(config)
    if not _is_worker(config):
        use_quick_compilation(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the full tier, unless tests are chosen by marker or by name, and what needs the paper's own tables."""
    from coreset_mcmc.datasets.paper import DATA_VARIABLE  # starts XLA, which reads its options only once

    runs_slow = config.getoption("--slow")
    is_chosen = bool(config.option.markexpr) or any("::" in argument for argument in config.args)
    left_out = set() if runs_slow or config.getoption("--full") or is_chosen else {"full"}
    if DATA_VARIABLE not in os.environ:
        left_out.add("paper_data")
    config.hook.pytest_deselected(items=[item for item in items if left_out & set(item.keywords)])
    items[:] = [item for item in items if not left_out & set(item.keywords)]
    sort_longest_first(items)
    for item in items:
        if "slow" in item.keywords and not runs_slow:
            item.add_marker(pytest.mark.skip(reason="takes minutes, or a shorter form runs; run with --slow"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")))


_forgetting = worker_memory.Forgetting()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    _forgetting.after_test()


def pytest_testnodedown(node: Any) -> None:
    """A worker has ended and says how much memory it had."""
    output = getattr(node, "workeroutput", {})
    if "peak_memory" in output:
        node.config.stash[PEAKS][node.gateway.id] = output["peak_memory"]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if _is_worker(config):
        config.workeroutput["peak_memory"] = worker_memory.peak()  # type: ignore[attr-defined]
        return
    peaks = config.stash[PEAKS] or {"the only process": worker_memory.peak()}
    config.stash[PEAKS] = peaks
    if config.getoption("--full") and max(peaks.values()) > worker_memory.LIMIT and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    limit = worker_memory.LIMIT
    for name, peak in config.stash[PEAKS].items():
        terminalreporter.write_line(f"peak memory of {name}: {_mebibytes(peak)}")
        if peak > limit:
            terminalreporter.write_line(
                f"{name} needed more than the {_mebibytes(limit)} that a process may have: a test holds too much, or "
                "compiled programs are not forgotten (tests/helpers/worker_memory.py). With --full this is a failure.",
                red=True,
            )


def _mebibytes(size: int) -> str:
    return f"{size / worker_memory.MEBIBYTE:,.0f} MiB"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.fixture(autouse=True)
def double_precision(request: pytest.FixtureRequest) -> Iterator[None]:
    """64-bit types for the duration of a test, unless it asks for the default with ``single_precision``."""
    with jax.enable_x64("single_precision" not in request.fixturenames):
        yield


@pytest.fixture
def single_precision() -> None:
    """Run the test with JAX as users have it by default."""


@pytest.fixture
def key(seed: int) -> jax.Array:
    return jax.random.key(seed)


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def poisson_data() -> dict[str, np.ndarray]:
    """Counts like those of the paper, with eight standardised features."""
    return bike_share_table()
