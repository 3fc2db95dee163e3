"""Every block of code on the pages runs: Python as it stands, commands of ours on small tables."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from coreset_mcmc.commands import cli, example
from coreset_mcmc_benchmarks.paper import command as paper_command
from tests.docs.running import BLOCKS, blocks_on, is_of_a_section, pages_with, run_python, stand_ins_for
from tests.docs.small_settings import COMMAND, WITHOUT_MORE
from tests.docs.stand_ins import ROWS, STAND_INS
from tests.helpers.code_blocks import ROOT

NOT_RUN = {
    ("docs/bring_your_model.md", "stan"): "Stan is no dependency; the tests of the recipes read the program",
    ("docs/how_to/stan.md", "stan"): "one line of the same program",
    ("docs/quick_start.md", "text"): "what the blocks before print",
    ("docs/trust.md", ""): "what a verdict looks like when it is printed",
    ("docs/tutorial.md", "text"): "what the blocks before print",
}
"""Blocks that are neither Python nor commands, and why there is nothing to run."""
WITH_A_REPORT = "docs/command_line.md"
"""The page whose first fit is checked and has a report, as fits of the command line have."""
AS_A_NOTEBOOK = "docs/tutorial.md"
"""The same code is a notebook, which has a test of its own."""
LONG_PAGES = [page for page in pages_with("python") if not is_of_a_section(page) and page != AS_A_NOTEBOOK]
ONLY_PARSED = ("pip install ", "python3 -m venv ", "git ")
"""Commands that change the machine: only their syntax is checked."""


def test_what_is_not_run_is_listed():
    found = {(block.page, block.language) for block in BLOCKS if block.language not in ("python", "bash")}
    assert found == set(NOT_RUN)


def test_every_stand_in_is_for_one_block():
    for page, stand_ins in STAND_INS.items():
        for words in stand_ins:
            assert sum(words in block.text for block in BLOCKS if block.page == page) == 1, (page, words)


@pytest.mark.full
@pytest.mark.parametrize("page", LONG_PAGES)
def test_python(page, in_a_folder, single_precision):
    """Pages in folders have a file of tests of their own, so that neither process needs too much memory."""
    run_python(page)


@pytest.mark.parametrize("page", pages_with("bash"))
def test_syntax_of_commands(page):
    for block in blocks_on(page, "bash"):
        subprocess.run(["bash", "-n", "-c", block.text], check=True)
        for line in block.text.splitlines():
            assert line.startswith(("coreset-mcmc ", *ONLY_PARSED)), f"{page}:{block.line}: say here how to run {line}"


@pytest.mark.full
@pytest.mark.parametrize("page", pages_with("bash"))
def test_commands(page, in_a_folder, monkeypatch, single_precision):
    """One folder for a page, a report on one page. Flights are few; experiments and figures of the paper, with tests of
    their own, are not made again."""
    every_flight = example.flights_with_weather
    monkeypatch.setattr(example, "flights_with_weather", lambda: every_flight().iloc[:: 300_000 // ROWS])
    monkeypatch.setattr(paper_command, "_run_missing", lambda console, request: None)
    monkeypatch.setattr(paper_command, "draw_figures", lambda folder: [])
    for folder in ("paper", "docs/paper"):
        shutil.copytree(ROOT / "docs" / "paper", in_a_folder / folder)
    fitted = int(page != WITH_A_REPORT)
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
