"""The fast tier reaches every room; what it leaves out is there for a reason of time alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.code_blocks import ROOT
from tests.helpers.longest_first import LONGEST
from tests.test_architecture import ROOMS

TESTS = ROOT / "tests"


def is_full(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any("pytest.mark.full" in ast.unparse(decorator) for decorator in node.decorator_list)


def fast_tests(path: Path) -> list[str]:
    """Names of test functions without the mark, of classes without it, in a module without it."""
    tree = ast.parse(path.read_text())
    if any(isinstance(node, ast.Assign) and "pytest.mark.full" in ast.unparse(node) for node in tree.body):
        return []
    tested = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_full(node)]
    methods = [method for node in tested if isinstance(node, ast.ClassDef) for method in node.body]
    functions = [node for node in [*tested, *methods] if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_") and not is_full(node)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_fast_tests(room):
    """In the folder of its name; two rooms without one are what every test of another room uses."""
    folder = TESTS / {"core": "fitting", "datasets": "benchmarks"}.get(room, room)
    assert sum(len(fast_tests(path)) for path in folder.rglob("test_*.py")) >= 3


def test_the_longest_files_are_there():
    assert len(set(LONGEST)) == len(LONGEST)
    assert [path for path in LONGEST if not (ROOT / path).exists()] == []


@pytest.mark.full
def test_a_test_without_the_mark_is_fast(tmp_path):
    """And one with it is left out, by a collection like that of ``pytest`` alone."""
    text = "import pytest\n\ndef test_one(): pass\n\n@pytest.mark.full\ndef test_two(): pass\n"
    (tmp_path / "test_sample.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-c", str(ROOT / "pyproject.toml")]
    command += ["-p", "tests.conftest", str(tmp_path / "test_sample.py")]

    def collected(*options):
        return subprocess.run([*command, *options], cwd=ROOT, check=False, capture_output=True, text=True).stdout

    fast, full = collected(), collected("--full")
    assert ("test_one" in fast, "test_two" in fast) == (True, False)
    assert ("test_one" in full, "test_two" in full) == (True, True)
