"""Every module of the benchmarks can be imported, and none leans on the tests or on a path of its own."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import coreset_mcmc_benchmarks
from coreset_mcmc.commands.bench import BENCHMARKS

PACKAGE = coreset_mcmc_benchmarks.__name__
MODULES = [module.name for module in pkgutil.walk_packages(coreset_mcmc_benchmarks.__path__, f"{PACKAGE}.")]
FILES = sorted(Path(coreset_mcmc_benchmarks.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_module_can_be_imported_and_says_what_it_is(name):
    assert importlib.import_module(name).__doc__


def test_the_walk_sees_every_file():
    assert len(MODULES) + 1 == len(FILES)


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=list(BENCHMARKS))
def test_every_command_has_its_module(benchmark):
    assert callable(importlib.import_module(f"{PACKAGE}.{benchmark.module}").main)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_benchmarks_import_neither_tests_nor_private_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] != "tests"
            assert not [alias.name for alias in node.names if alias.name.startswith("_")]
    assert "sys.path.insert" not in path.read_text()


def test_there_are_no_loose_scripts():
    assert list(Path(coreset_mcmc_benchmarks.__file__).parents[1].glob("*.py")) == []
