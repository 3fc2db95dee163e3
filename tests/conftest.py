"""Shared fixtures: double precision as the package itself uses it, seeds that can be swept, and the paper's data."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

POISSON_SHA256 = "065762a51f68a04ab89ff6f7b1b426e50ae99ae44595f5c5226e5a8fe783ee4d"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=1, help="repeat statistical tests with this many seeds")
    parser.addoption("--slow", action="store_true", help="also run tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --slow"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")))


MAX_MEMORY_MAPS = 25_000
"""Every compiled program maps a few pieces of memory; at the kernel's limit, 65 530 by default, compilation crashes."""


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_are_forgotten_in_time() -> Iterator[None]:
    """Between two modules, if there are very many; the programs that they share are then compiled again."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MEMORY_MAPS:
        jax.clear_caches()
        gc.collect()


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
    """The bike-share counts of the paper: 8 standardised features, a constant column, the response."""
    directory = os.environ.get("CORESET_MCMC_DATA", Path(__file__).parents[2] / "shared" / "data")
    path = Path(directory) / "poisson_reg.csv"
    if not path.exists():
        pytest.skip("poisson_reg.csv not found: name its folder in CORESET_MCMC_DATA")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == POISSON_SHA256
    table = np.loadtxt(path, delimiter=",")
    return {"x": table[:, :8], "y": table[:, 9]}
