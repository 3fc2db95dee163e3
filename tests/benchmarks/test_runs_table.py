"""The one table of runs: appended at once, resumed by its keys, whole even after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc_benchmarks.interop.comparison import interop_table
from coreset_mcmc_benchmarks.methods.page import methods_table
from coreset_mcmc_benchmarks.paper.table import curves_table, runs_table
from coreset_mcmc_benchmarks.runs_table import RunsTable
from coreset_mcmc_benchmarks.selection import selection_table
from coreset_mcmc_benchmarks.speed.table import speed_table
from coreset_mcmc_benchmarks.verdicts.table import verdicts_table

DOCS = Path(__file__).parents[2] / "docs"


class Job(NamedTuple):
    name: str
    seed: int

    @property
    def key(self):
        return (self.name, str(self.seed))


@pytest.fixture
def table(tmp_path):
    return RunsTable(tmp_path / "new" / "runs.csv", ("name", "seed", "kl", "words"), ("name", "seed"))


def test_without_a_file_everything_is_missing(table):
    assert table.rows() == []
    assert table.missing([Job("a", 1)]) == [Job("a", 1)]
    with pytest.raises(InputError, match="table of runs"):
        table.frame()


def test_rows_are_found_again_by_their_keys(table):
    table.append({"name": "a", "seed": 1, "kl": 0.123456789, "words": "two\nlines"})
    table.append({"name": "b", "seed": 2})
    assert table.missing([Job("a", 1), Job("a", 2), Job("b", 2)]) == [Job("a", 2)]
    assert table.rows()[0] == {"name": "a", "seed": "1", "kl": "0.12346", "words": "two lines"}
    assert table.rows()[1]["kl"] == ""
    assert table.frame()["kl"].isna().to_list() == [False, True]


@pytest.mark.parametrize("torn", ["c,3,0.", "c,3,0.5,whole but for the end of its line"])
def test_a_line_that_was_cut_short_is_made_again(table, torn):
    table.append({"name": "a", "seed": 1})
    whole = table.path.read_bytes()
    table.path.write_bytes(whole + torn.encode())
    assert table.missing([Job("a", 1), Job("c", 3)]) == [Job("c", 3)]
    assert len(table.frame()) == 1
    table.append({"name": "c", "seed": 3, "kl": 0.5})
    assert table.path.read_bytes().startswith(whole)
    assert [row["name"] for row in table.rows()] == ["a", "c"]


def test_a_header_that_was_cut_short_is_written_again(table):
    table.path.parent.mkdir()
    table.path.write_text("name,se")
    table.append({"name": "a", "seed": 1})
    assert table.finished() == {("a", "1")}


def test_columns_of_another_version_are_refused_and_the_file_is_left_alone(table):
    table.path.parent.mkdir()
    table.path.write_text("name,seed\na,1\n")
    for ask in (table.rows, table.frame, lambda: table.append({"name": "b", "seed": 2})):
        with pytest.raises(InputError, match="columns"):
            ask()
    assert table.path.read_text() == "name,seed\na,1\n"


@pytest.mark.parametrize(
    "committed",
    [
        methods_table(DOCS / "benchmarks"),
        selection_table(DOCS / "benchmarks"),
        speed_table(DOCS / "benchmarks"),
        verdicts_table(DOCS / "benchmarks"),
        interop_table(DOCS / "benchmarks" / "interop_numpyro.csv"),
        interop_table(DOCS / "benchmarks" / "interop_pymc.csv"),
        runs_table(DOCS / "paper"),
        curves_table(DOCS / "paper"),
    ],
    ids=lambda table: table.path.name,
)
def test_committed_tables_can_be_resumed(committed):
    rows = committed.rows()
    assert rows
    assert len(committed.finished()) == len(rows)
