"""Files about the project parse, agree with each other, and name only what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
NAMED_BEFORE = ("src/coreset_mcmc/methods",)
"""Folders that CONTRIBUTING.md names once, and whose content it then names without them."""


def read(path: str | Path) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def steps_of(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_citation_is_of_this_version():
    citation = read("CITATION.cff")
    project = SETTINGS["project"]
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == (project["name"], project["version"])
    assert citation["license"] == project["license"]
    assert citation["repository-code"] == project["urls"]["Source"]
    assert citation["preferred-citation"]["title"] == "Coreset Markov Chain Monte Carlo"


def test_hooks_need_nothing_from_a_network():
    hooks = [
        (repository["repo"], hook)
        for repository in read(".pre-commit-config.yaml")["repos"]
        for hook in repository["hooks"]
    ]
    assert {repository for repository, _ in hooks} == {"local"}
    assert {hook["language"] for _, hook in hooks} == {"system"}
    tools = [hook["entry"].removeprefix("python -m ").split()[0] for _, hook in hooks]
    assert tools == ["ruff", "ruff", "mypy", "pytest"]


def test_the_forge_runs_every_python_that_we_declare():
    declared = [name.split(" :: ")[-1] for name in SETTINGS["project"]["classifiers"] if re.search(r":: 3\.\d+$", name)]
    jobs = read(".github/workflows/ci.yml")["jobs"]
    assert jobs["newest"]["strategy"]["matrix"]["python"] == declared
    assert SETTINGS["project"]["requires-python"] == f">={declared[0]}"
    commands = [command for job in jobs.values() for command in steps_of(job)]
    assert {".ci/run", ".github/oldest_dependencies.sh"} <= set(commands)


def test_the_forge_runs_every_week():
    triggers = read(".github/workflows/ci.yml")[True]  # YAML reads the key "on" as a truth value
    assert [rule["cron"].split()[-1] for rule in triggers["schedule"]] == ["1"]


def test_every_dependency_has_a_lower_bound():
    extras = SETTINGS["project"]["optional-dependencies"].values()
    for requirement in [*SETTINGS["project"]["dependencies"], *(entry for extra in extras for entry in extra)]:
        is_bounded = ">=" in requirement or requirement.startswith(("coreset-mcmc[", "matplotlib<"))
        assert is_bounded, f"{requirement} leaves open how old it may be"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_each_thing_once(path: Path):
    form = read(path)
    asked = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert form["name"]
    assert form["description"]
    assert len(asked) == len(set(asked)) > 0


def test_a_bug_report_says_what_we_always_ask_for():
    asked = {part.get("id") for part in read(".github/ISSUE_TEMPLATE/bug.yml")["body"]}
    assert {"model", "rows", "parameters", "trust", "versions"} <= asked


def paths_named_in(page: str) -> list[str]:
    """Words in code type with a slash at the end or in them, or with the ending of a file."""
    words = re.findall(r"`([\w./-]+)`", (ROOT / page).read_text())
    return [word for word in words if "/" in word or word.endswith((".py", ".md", ".toml", ".yaml", ".yml"))]


@pytest.mark.parametrize("path", paths_named_in("CONTRIBUTING.md"))
def test_every_path_of_the_contributors_page_exists(path: str):
    assert any((ROOT / folder / path).exists() for folder in ("", *NAMED_BEFORE)), path
