"""Every block of code on the pages runs: Python as it stands, commands of ours on small tables."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
from typer.testing import CliRunner

import coreset_mcmc as cm
from coreset_mcmc.commands import cli, example
from coreset_mcmc_benchmarks.paper import command as paper_command
from tests.docs.small_settings import COMMAND, WITHOUT_MORE, with_small_settings
from tests.docs.stand_ins import ROWS, STAND_INS
from tests.helpers.code_blocks import ROOT, Block, all_blocks

BLOCKS = all_blocks()
NOT_RUN = {
    ("docs/bring_your_model.md", "stan"): "Stan is no dependency; the tests of the recipes read the program",
    ("docs/trust.md", ""): "what a verdict looks like when it is printed",
}
"""Blocks that are neither Python nor commands, and why there is nothing to run."""
ONLY_PARSED = ("pip install ", "python3 -m venv ", "git ")
"""Commands that change the machine: only their syntax is checked."""


def pages_with(language: str) -> list[str]:
    return sorted({block.page for block in BLOCKS if block.language == language})


def blocks_on(page: str, language: str) -> list[Block]:
    return [block for block in BLOCKS if (block.page, block.language) == (page, language)]


def test_what_is_not_run_is_listed():
    found = {(block.page, block.language) for block in BLOCKS if block.language not in ("python", "bash")}
    assert found == set(NOT_RUN)


def test_every_stand_in_is_for_one_block():
    for page, stand_ins in STAND_INS.items():
        for words in stand_ins:
            assert sum(words in block.text for block in BLOCKS if block.page == page) == 1, (page, words)


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch, page) -> Iterator[Path]:
    """Where a page may write. The first fit of the first page trains a coreset; for the others uniform weights and a
    kernel that needs no pilot run, quick to compile, do."""
    monkeypatch.chdir(tmp_path)
    trained = [cm.LeastSquares(num_draws=80, num_chains=2, num_rounds=3)] if page == "README.md" else []
    with_small_settings(monkeypatch, chain(trained, repeat(cm.Uniform(cm.kernels.RandomWalk(0.1)))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield tmp_path


def stand_ins_for(block: Block) -> dict[str, object]:
    made = [make() for words, make in STAND_INS.get(block.page, {}).items() if words in block.text]
    return {name: value for names in made for name, value in names.items()}


@pytest.mark.full
@pytest.mark.parametrize("page", pages_with("python"))
def test_python(page, in_a_folder, single_precision):
    """In one namespace, as a reader goes down the page; a traceback shows the line of the page."""
    names: dict[str, object] = {}
    for block in blocks_on(page, "python"):
        names.update(stand_ins_for(block))
        exec(compile("\n" * (block.line - 1) + block.text, str(ROOT / page), "exec"), names)


@pytest.mark.parametrize("page", pages_with("bash"))
def test_syntax_of_commands(page):
    for block in blocks_on(page, "bash"):
        subprocess.run(["bash", "-n", "-c", block.text], check=True)
        for line in block.text.splitlines():
            assert line.startswith(("coreset-mcmc ", *ONLY_PARSED)), f"{page}:{block.line}: say here how to run {line}"


@pytest.mark.full
@pytest.mark.parametrize("page", pages_with("bash"))
def test_commands(page, in_a_folder, monkeypatch, single_precision):
    """One folder for a page, one report on it. Flights are few; experiments and figures of the paper, with tests of
    their own, are not made again."""
    every_flight = example.flights_with_weather
    monkeypatch.setattr(example, "flights_with_weather", lambda: every_flight().iloc[:: 300_000 // ROWS])
    monkeypatch.setattr(paper_command, "_run_missing", lambda console, request: None)
    monkeypatch.setattr(paper_command, "draw_figures", lambda folder: [])
    for folder in ("paper", "docs/paper"):
        shutil.copytree(ROOT / "docs" / "paper", in_a_folder / folder)
    fitted = 0
    for block in blocks_on(page, "bash"):
        stand_ins_for(block)
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "coreset-mcmc":
                is_fit = words[1] == "fit"
                small = COMMAND if is_fit and "--config" not in words else []
                small = [*small, *WITHOUT_MORE] if is_fit and fitted else small
                fitted += is_fit
                outcome = CliRunner().invoke(cli.app, [*words[1:], *small], catch_exceptions=False)
                assert outcome.exit_code == 0, f"{page}:{block.line}: {line}\n{outcome.output}"
