"""Pages of the documentation are what the committed tables give, and cite commands that exist."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coreset_mcmc.commands import bench, cli
from coreset_mcmc_benchmarks.paper.beside_authors import write_beside_authors
from coreset_mcmc_benchmarks.paper.findings import write_findings
from coreset_mcmc_benchmarks.paper.summary import write_summary
from coreset_mcmc_benchmarks.speed.page import write_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
runner = CliRunner()


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("methods", "methods"),
        ("numpyro", "interop_numpyro"),
        ("pymc", "interop_pymc"),
        ("black-boxes", "black_boxes"),
        pytest.param("libraries", "libraries", marks=pytest.mark.full),
    ],
)
def test_page_comes_from_its_table(name, stem, tmp_path):
    shutil.copy(DOCS / "benchmarks" / f"{stem}.csv", tmp_path)
    result = runner.invoke(cli.app, ["bench", name, "--table", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert (tmp_path / f"{stem}.md").read_text() == (DOCS / "benchmarks" / f"{stem}.md").read_text()


@pytest.mark.parametrize(("options", "stem"), [(["--set", "sizes"], "trust"), ([], "trust_zoo")])
def test_tables_of_the_verdicts_come_from_their_table(options, stem, tmp_path):
    shutil.copy(DOCS / "benchmarks" / f"{stem}.csv", tmp_path)
    shutil.copy(DOCS / "trust.md", tmp_path / "page.md")
    arguments = [*options, "--table", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")]
    assert runner.invoke(cli.app, ["bench", "trust", *arguments], catch_exceptions=False).exit_code == 0
    assert (tmp_path / f"{stem}.md").read_text() == (DOCS / "benchmarks" / f"{stem}.md").read_text()
    assert (tmp_path / "page.md").read_text() == (DOCS / "trust.md").read_text()


@pytest.mark.full
def test_pages_of_speed_and_of_the_paper_come_from_their_tables(tmp_path):
    shutil.copy(DOCS / "benchmarks" / "speed.csv", tmp_path)
    for name in ("runs.csv", "curves.csv"):
        shutil.copy(DOCS / "paper" / name, tmp_path)
    assert write_page(tmp_path).read_text() == (DOCS / "benchmarks" / "speed.md").read_text()
    for write in (write_summary, write_findings, write_beside_authors):
        made = write(tmp_path)
        assert made.read_text() == (DOCS / "paper" / made.name).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_cite_benchmarks_that_exist(page):
    text = page.read_text()
    known = {"paper", "speed", *bench.BENCHMARKS}
    assert set(re.findall(r"coreset-mcmc bench ([a-z-]+)", text)) <= known
    assert "python benchmarks/" not in text
    for path in re.findall(r"`(benchmarks/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
