"""The names for extensions: complete, documented, and enough for the examples."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import coreset_mcmc as cm
from coreset_mcmc import extend

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_name_is_there():
    assert all(hasattr(extend, name) for name in extend.__all__)
    assert sorted(extend.__all__) == extend.__all__


@pytest.mark.parametrize("name", extend.__all__)
def test_classes_and_functions_say_what_they_are_for(name):
    value = getattr(extend, name)
    assert not callable(value) or inspect.isbuiltin(value) or value.__doc__


@pytest.mark.parametrize("example", ["own_method.py", "custom_kernel.py"])
def test_examples_import_nothing_else(example):
    tree = ast.parse((EXAMPLES / example).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if name.startswith("coreset_mcmc")} == {"coreset_mcmc"}


def test_every_method_keeps_the_contract():
    from coreset_mcmc.methods.registry import KERNELS, METHODS, SELECTIONS

    assert all(issubclass(method, extend.Method) for method in METHODS.values())
    assert all(name == method.name for name, method in METHODS.items())
    assert all(issubclass(selection, extend.Selection) for selection in SELECTIONS.values())
    classes = [kernel for kernel in KERNELS.values() if inspect.isclass(kernel)]
    assert all(issubclass(kernel, extend.Kernel) for kernel in classes)
    assert cm.extend is extend
