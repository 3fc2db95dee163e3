"""What can be wrong with a table that is not read into memory, and with what is said about engines and memory."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.commands import reading
from coreset_mcmc.commands.budget import bytes_of, in_words
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.engine import Local
from tests.helpers.large_tables import MODEL, QUICK, SIZE, in_every_form, outcomes, written

STREAM = ["--engine", "stream"]


def stopped_fit(*arguments, **options):
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    place = in_every_form(tmp_path_factory.mktemp("mistakes"))
    table = outcomes()
    np.savez(place / "table.npz", y=table["y"], x=table["x"], group=table["group"].to_numpy(str))
    (place / "other.csv").write_text("y,x\n1,2\n")
    return place


def with_a_gap(folder: Path) -> Path:
    table = outcomes()
    table.loc[SIZE - 1, "x"] = np.nan
    return written(folder, table)


MISTAKES = {
    "no such engine": (["parts", "--engine", "spark"], "one of auto, memory, stream, dask, ray"),
    "dask without an address": (["parts", "--engine", "dask"], "--scheduler tcp://"),
    "ray without an address": (["parts", "--engine", "ray"], "no --scheduler"),
    "an address without a cluster": (["parts", "--scheduler", "tcp://here:1"], "--engine dask or --engine ray"),
    "an address for a stream": (["parts", *STREAM, "--scheduler", "tcp://here:1"], "leave --scheduler out"),
    "a limit in words": (["parts", "--memory-limit", "much"], "--memory-limit 2GB"),
    "no memory": (["parts", "--memory-limit", "0GB"], "above zero"),
    "memory against its limit": (["parts", "--engine", "memory", "--memory-limit", "20KB"], "Use --engine stream"),
    "an archive as a stream": (["table.npz", *STREAM], "a NumPy archive"),
    "an archive above the limit": (["table.npz", "--memory-limit", "20KB"], "Save the table as Parquet"),
    "two formats": (["table.parquet", "second.csv"], "files of one format"),
    "a pattern of nothing": (["parts/*.pq"], "no file that matches"),
    "the same file twice": (["parts", "parts/part-1.parquet"], "part-1.parquet"),
    "a password in the address": (["s3://me:secret@bucket/table"], "AWS_ACCESS_KEY_ID"),
    "text elsewhere": (["s3://bucket/table.csv"], "text on this machine"),
    "an unknown column": (["parts", "-f", "y ~ xx", *STREAM], "xx"),
    "text with other columns": (["second.csv", "other.csv", *STREAM], "other.csv"),
    "a transform of all rows": (["parts", "-f", "y ~ poly(x, 2)", *STREAM], "poly"),
    "a method that holds all rows": (["parts", "--method", "nuts", "--memory-limit", "20KB"], "method nuts"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_a_message(name, tables, command, tmp_path, monkeypatch):
    arguments, message = MISTAKES[name]
    monkeypatch.chdir(tables)
    if "--method" not in arguments:
        monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", stopped_fit)
    result = command("fit", *(MODEL if "--method" in arguments else QUICK), *arguments, "--out", tmp_path / "run")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "secret" not in result.output
    if "--method" not in arguments:
        assert not (tmp_path / "run").exists()


def test_a_missing_value_in_the_last_row_group_is_named(command, tmp_path):
    parts = with_a_gap(tmp_path / "parts")
    result = command("fit", parts, *QUICK, *STREAM, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "x: 1; first in row 488 of part-10.parquet (row 1299 of all)" in result.stderr
    assert "--drop-missing" in result.stderr
    assert "drop_missing=" not in result.stderr
    assert not (tmp_path / "run").exists()


def test_text_that_is_refused_after_its_conversion_leaves_nothing(command, tmp_path):
    pd.read_parquet(with_a_gap(tmp_path / "parts")).to_csv(tmp_path / "table.csv", index=False)
    result = command("fit", tmp_path / "table.csv", *QUICK, *STREAM, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "--drop-missing" in result.stderr
    assert not (tmp_path / "run").exists()


class StandIn(Local):
    """An engine that remembers what was done with it."""

    made: ClassVar[list[StandIn]] = []

    def __init__(self, address):
        super().__init__()
        self.address, self.is_closed, self.num_passes = address, False, 0
        self.made.append(self)

    def each_part(self, *arguments):
        self.num_passes += 1
        return super().each_part(*arguments)

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize("engine", ["Dask", "Ray"])
def test_clusters_pass_over_the_rows(engine, tables, command, tmp_path, monkeypatch):
    """The table is measured by the engine, which the fit gets as well; a resumed run may have another address."""
    engines = []

    def fit(model, rows, **options):
        engines.append(rows.engine)
        raise KeyboardInterrupt

    monkeypatch.setattr(StandIn, "made", [])
    monkeypatch.setattr(reading, engine, StandIn)
    monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", fit)
    options = ["--engine", engine.lower(), "--scheduler", "tcp://one:1", "--out", tmp_path / "run"]
    assert command("fit", tables / "parts", *QUICK, *options).exit_code == 130
    assert command("resume", tmp_path / "run").exit_code == 130
    assert command("resume", tmp_path / "run", "--scheduler", "tcp://two:2").exit_code == 130
    assert [made.address for made in StandIn.made] == ["tcp://one:1", "tcp://one:1", "tcp://two:2"]
    assert engines == StandIn.made
    assert all(made.is_closed and made.num_passes >= 2 for made in StandIn.made)


@pytest.mark.full
def test_a_table_is_measured_by_a_real_cluster(tables, command, tmp_path, monkeypatch):
    """Rows of tables are no arrays, and workers keep them all the same."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", stopped_fit)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        options = ["--engine", "dask", "--scheduler", cluster.scheduler_address, "--out", tmp_path / "run"]
        made = command("fit", tables / "parts", *QUICK, *options)
    assert made.exit_code == 130, made.output
    assert "1,300 rows of parts" in made.output


@pytest.mark.full
def test_a_scheduler_that_is_not_there(tables, command, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    with dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}):
        options = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "run"]
        result = command("fit", tables / "parts", *QUICK, *options)
    assert result.exit_code == 2
    assert "--scheduler tcp://127.0.0.1:1" in result.stderr
    assert "dask worker ADDRESS" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_configuration_with_a_cluster_can_be_run_without_it(tables, command, tmp_path, monkeypatch):
    monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", stopped_fit)
    config = tmp_path / "mine.toml"
    config.write_text('[engine]\nname = "dask"\nscheduler = "tcp://one:1"\n')
    options = [*QUICK, "--config", config, "--engine", "stream", "--out", tmp_path / "run"]
    assert command("fit", tables / "parts", *options).exit_code == 130


@pytest.mark.parametrize(
    ("text", "number"), [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("500mb", 5 * 10**8), ("7", 7), ("1kB", 1_000)]
)
def test_sizes(text, number):
    assert bytes_of(text) == number


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2 iB", "1e9", "two"])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match="--memory-limit"):
        bytes_of(text)


@pytest.mark.parametrize(
    ("number", "words"), [(999, "999 bytes"), (4_400_000_000, "4.4 GB"), (123_456_789, "123 MB"), (3 * 10**12, "3 TB")]
)
def test_sizes_in_words(number, words):
    assert in_words(number) == words
