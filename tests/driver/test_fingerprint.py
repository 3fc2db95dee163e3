"""The same run has the same fingerprint in every process, and another run another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from coreset_mcmc.driver.fingerprint import describe, fingerprint

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.driver.test_fingerprint import FUNCTIONS
from coreset_mcmc.driver.fingerprint import fingerprint
print(json.dumps({name: fingerprint(function) for name, function in FUNCTIONS.items()}))
"""


def scaled(x, factor=2.0):
    return factor * x if "one" in {"one", "two", "three", "four"} else x


class Likelihood:
    """A callable without a word of its own to print."""

    def __init__(self, power: float) -> None:
        self.power = power

    def __call__(self, position, batch):
        return position * batch**self.power

    def other(self, position, batch):
        return position - batch**self.power


FUNCTIONS = {
    "plain": scaled,
    "jitted": jax.jit(scaled),
    "partial": partial(scaled, factor=3.0),
    "jitted partial": jax.jit(partial(scaled, factor=3.0)),
    "partial of a jitted one": partial(jax.jit(scaled), factor=3.0),
    "callable object": Likelihood(2.0),
    "bound method": Likelihood(2.0).other,
    "vectorised": jax.vmap(scaled),
    "library function": jnp.linalg.norm,
}


@pytest.fixture(scope="module")
def fingerprints():
    """As two processes see them, whose sets have different orders."""
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[2])]
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in "12"]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, env=env) for env in environments]
    return [json.loads(run.stdout) for run in runs]


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_processes_agree(name, fingerprints):
    one, other = fingerprints
    assert one[name] == other[name]


def test_what_differs_is_noticed():
    others = [
        scaled,
        jax.jit(scaled),
        partial(scaled, factor=3.0),
        partial(scaled, factor=4.0),
        jax.jit(partial(scaled, factor=4.0)),
        Likelihood(2.0),
        Likelihood(3.0),
        Likelihood(2.0).other,
        Likelihood(3.0).other,
    ]
    assert len({fingerprint(other) for other in others}) == len(others)


def test_defaults_and_closures_count():
    def with_default(factor):
        def function(x, power=factor):
            return x**power

        return function

    assert fingerprint(with_default(1.0)) != fingerprint(with_default(2.0))


def test_a_function_that_refers_to_itself_ends():
    def endless(x):
        return endless(x)

    assert describe(endless) == describe(endless)


@pytest.mark.parametrize("value", [jax.random.key(1), {1, 2}, jnp.ones(2), len, jnp, None, int])
def test_everything_has_a_description(value):
    assert fingerprint(value) == fingerprint(value)
    assert " at 0x" not in str(describe(value))
