"""What is released: a small wheel of the package alone, and files about it that agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools import architecture

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = SETTINGS["project"]["version"]


def test_the_changelog_has_this_version():
    assert re.search(
        rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_the_wheel_holds_the_package_and_no_comparisons():
    """Text zips to two fifths of its size: 2.4 MB of files are a wheel of less than 1 MB."""
    packages = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["src/coreset_mcmc"]
    files = [path for path in (ROOT / packages[0]).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 2_400_000
    assert {path.suffix for path in files} <= {".py", ".pyi", ".typed", ".html", ".css"}


def test_the_licence_is_an_expression_and_pages_are_named():
    project = SETTINGS["project"]
    assert project["license"] == "MIT"
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(project["urls"])
    assert not [name for name in project["classifiers"] if name.startswith("License ::")]


def test_contributors_are_told_how_to_tag():
    assert f"git tag -a v{VERSION}" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_security_note_says_what_is_read_executed_and_kept():
    text = (ROOT / "SECURITY.md").read_text()
    assert re.findall(r"^## What is (\w+)$", text, re.MULTILINE) == ["read", "executed", "kept"]


def test_the_map_is_drawn_from_the_code():
    """python -m tools.architecture draws it again."""
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.drawing()
