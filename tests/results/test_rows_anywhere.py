"""A finished fit and rows wherever they are: the same numbers from arrays and from a stream, in memory and in files."""

from __future__ import annotations

import errno
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core import memory
from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.data import layout
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.results.loo import loo
from coreset_mcmc.results.loo_totals import Totals
from coreset_mcmc.results.predictive import predict
from tests.helpers.streamed import Streamed, Tabular

pytestmark = pytest.mark.filterwarnings("ignore:The Pareto k-hat of .* rows:UserWarning")

SIZE = 5_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(SIZE, 2)).astype(np.float32)
DATA = {"x": X, "y": (X @ [1.0, -0.5] + RNG.normal(size=SIZE)).astype(np.float32)}


def log_likelihood(beta, rows):
    return -0.5 * (rows["y"] - rows["x"] @ beta) ** 2


def predictive(key, beta, rows):
    mean = rows["x"] @ beta
    noise = jax.random.normal(key, (*mean.shape, 2))
    return {"y": mean + noise[:, 0], "pair": mean[:, None] + noise}


MODEL = cm.Model(
    lambda beta: -0.5 * jnp.sum(beta**2),
    log_likelihood,
    np.zeros(2),
    predictive=predictive,
    observed=("y",),
)


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch):
    """Short leaves, so that 5 000 rows make 20 leaves in two parts."""
    monkeypatch.setattr(layout, "MOST_LEAF_ROWS", 256)


@pytest.fixture(scope="module")
def made():
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(MODEL, DATA, coreset_size=50, draws=100, tune=50, chains=2, random_seed=1, progressbar=False)


@pytest.fixture
def fitted(made):
    """In memory, by the layout of these tests."""
    return replace(made, tree=made.tree.copy(), rows=Rows.of_arrays(DATA))


@pytest.fixture
def streamed(made):
    """Another copy that must have read its rows when a test is over."""
    source = Streamed(DATA)
    yield replace(made, tree=made.tree.copy(), data=source, rows=Rows(source, Local(threads=3)))
    assert source.reads


def draws_of(made):
    return made.posterior["theta"].to_numpy()


class TestTheSameFromAStream:
    def test_predictions(self, fitted, streamed):
        here, there = (fit.predict(draws=20)["posterior_predictive"] for fit in (fitted, streamed))
        for name in ("y", "pair"):
            np.testing.assert_array_equal(here[name], there[name])

    def test_draws_of_predictions(self, fitted, streamed):
        here, there = (fit.predict(draws=3, quantiles=None)["posterior_predictive"] for fit in (fitted, streamed))
        assert here["pair"].shape == (1, 3, SIZE, 2)
        np.testing.assert_array_equal(here["pair"], there["pair"])

    def test_weights(self, fitted, streamed):
        here, there = (fit.reweight() for fit in (fitted, streamed))
        assert here.settings == there.settings
        np.testing.assert_array_equal(draws_of(here), draws_of(there))

    def test_leave_one_out(self, fitted, streamed):
        here, there = (fit.loo(draws=30) for fit in (fitted, streamed))
        assert (here.elpd, here.se, here.p) == (there.elpd, there.se, there.p)
        np.testing.assert_array_equal(here.elpd_i, there.elpd_i)

    def test_exact_draws(self, fitted, streamed):
        here, there = (fit.exact(draws=20, tune=2, chains=2, progressbar=False) for fit in (fitted, streamed))
        np.testing.assert_array_equal(draws_of(here), draws_of(there))
        assert here.sampling.num_evaluations == there.sampling.num_evaluations

    def test_the_verdict(self, fitted, streamed):
        here, there = (fit.trust(draws=50, num_coresets=1, sensitivity=False) for fit in (fitted, streamed))
        assert here.kl_estimate == there.kl_estimate
        assert here.pareto_k == there.pareto_k

    def test_nobody_reads_all_rows_at_once(self, streamed):
        streamed.predict(draws=3)
        streamed.loo(draws=30)
        source = streamed.data
        assert max(stop - start for start, stop in source.reads) == 256


def test_another_seed_makes_other_predictions(fitted):
    one, same, other = (fitted.predict(draws=5, random_seed=seed)["posterior_predictive"]["y"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.mean(one.sel(statistic="sd").to_numpy() == other.sel(statistic="sd").to_numpy()) < 0.01


def test_no_two_blocks_share_random_numbers(fitted):
    """Rows that are alike but for their place have different responses."""
    alike = {"x": np.ones((1_000, 2)), "y": np.zeros(1_000)}
    made = fitted.predict(alike, draws=1, quantiles=None, var_names="y")["posterior_predictive"]["y"]
    assert np.unique(made.to_numpy()).size == 1_000


class TestPredictionsInAFile:
    def test_are_those_in_memory(self, streamed, tmp_path):
        place = tmp_path / "predictions.parquet"
        assert streamed.predict(draws=20, to=place, var_names=["y", "pair"]) == place
        table = pd.read_parquet(place)
        tree = streamed.predict(draws=20)["posterior_predictive"]
        statistics = ["mean", "sd", "q0.055", "q0.5", "q0.945"]
        assert list(table.columns) == [
            "row",
            *(f"{name}_{statistic}" for name in ("y", "pair[0]", "pair[1]") for statistic in statistics),
        ]
        np.testing.assert_array_equal(table["row"], np.arange(SIZE))
        for statistic in statistics:
            chosen = tree.sel(statistic=statistic)
            np.testing.assert_array_equal(table[f"y_{statistic}"], chosen["y"])
            np.testing.assert_array_equal(table[f"pair[1]_{statistic}"], chosen["pair"][:, 1])

    def test_come_in_row_groups(self, streamed, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        file = parquet.ParquetFile(streamed.predict(draws=3, to=tmp_path / "predictions.parquet"))
        counts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        assert counts == [4_096, 904]

    def test_a_full_disk_leaves_what_was_there_and_says_so(self, streamed, tmp_path, monkeypatch):
        parquet = pytest.importorskip("pyarrow.parquet")
        place = tmp_path / "predictions.parquet"
        place.write_text("an older file")
        write, calls = parquet.ParquetWriter.write_table, []

        def until_full(self, table, *args, **options):
            calls.append(len(table))
            if len(calls) == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(self, table, *args, **options)

        monkeypatch.setattr(parquet.ParquetWriter, "write_table", until_full)
        with pytest.raises(RunError, match=r"after 4,096 rows \(No space left on device\).*Make room"):
            streamed.predict(draws=3, to=place)
        assert calls == [4_096, 904]
        assert [path.name for path in tmp_path.iterdir()] == ["predictions.parquet"]
        assert place.read_text() == "an older file"

    def test_a_source_that_fails_is_not_taken_for_a_full_disk(self, fitted, tmp_path):
        class Broken(Streamed):
            def read(self, start, stop):
                if start > 4_500:
                    raise OSError("the file was truncated")
                return super().read(start, stop)

        with pytest.raises(OSError, match="the file was truncated"):
            fitted.predict(Broken(DATA), draws=3, to=tmp_path / "predictions.parquet")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("place", ["predictions.csv", "missing/predictions.parquet"])
    def test_a_place_that_will_not_do_is_refused_before_any_work(self, fitted, tmp_path, place):
        source = Streamed(DATA)
        for write in (fitted.predict, fitted.loo):
            with pytest.raises(InputError, match="to: got"):
                write(source, to=tmp_path / place)
        assert source.reads == []

    def test_draws_are_for_memory(self, fitted, tmp_path):
        with pytest.raises(InputError, match="Leave quantiles out"):
            fitted.predict(quantiles=None, to=tmp_path / "predictions.parquet")


class TestMemory:
    def test_what_does_not_fit_is_refused_with_the_way_out(self, fitted, monkeypatch):
        monkeypatch.setattr(memory, "free_memory", lambda: 2 * SIZE * 8)
        source = Streamed(DATA)
        with pytest.raises(InputError, match=r'to="predictions\.parquet"'):
            fitted.predict(source, draws=3)
        with pytest.raises(InputError, match=r'to="loo\.parquet"'):
            fitted.loo(source, draws=30)
        assert source.reads == []

    def test_what_fits_is_not_refused(self, fitted, monkeypatch):
        monkeypatch.setattr(memory, "free_memory", lambda: 2 * SIZE * 16)
        fitted.predict(draws=3, quantiles=(), var_names="y")
        fitted.loo(draws=30)

    def test_free_memory_is_what_the_system_says(self, tmp_path, monkeypatch):
        assert memory.free_memory() is None or memory.free_memory() > 0
        (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\n")
        monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
        monkeypatch.setattr(memory, "GROUP", tmp_path)
        assert memory.free_memory() == 50 * 1024
        for limit, free in (("max", 50 * 1024), ("3000", 1000), ("1000", 0)):
            (tmp_path / "memory.max").write_text(limit)
            (tmp_path / "memory.current").write_text("2000\n")
            assert memory.free_memory() == free
        monkeypatch.setattr(memory, "MEMINFO", tmp_path / "nowhere")
        assert memory.free_memory() is None


def test_a_row_that_is_not_finite_is_named(fitted):
    x = X.copy()
    x[4_321, 1] = np.nan
    with pytest.raises(InputError, match="NaN or an infinite value in file 43, row 21"):
        fitted.predict(Streamed({**DATA, "x": x}), draws=3)


class TestLeaveOneOutInAFile:
    def test_values_and_totals_are_those_in_memory(self, streamed, tmp_path):
        place = tmp_path / "loo.parquet"
        kept, written = streamed.loo(draws=30), streamed.loo(draws=30, to=place)
        table = pd.read_parquet(place)
        assert list(table.columns) == ["row", "elpd_i", "pareto_k"]
        np.testing.assert_array_equal(table["row"], np.arange(SIZE))
        np.testing.assert_array_equal(table["elpd_i"], kept.elpd_i)
        np.testing.assert_array_equal(table["pareto_k"], kept.pareto_k)
        assert (written.elpd, written.se, written.p) == (kept.elpd, kept.se, kept.p)
        assert written.elpd_i is None
        assert written.pareto_k is None
        assert "elpd_loo" in str(written)
        assert kept.se == pytest.approx(np.sqrt(SIZE * np.var(kept.elpd_i.to_numpy())), rel=1e-12)
        assert kept.elpd == pytest.approx(float(kept.elpd_i.sum()), rel=1e-12)

    def test_bad_rows_are_looked_for_in_the_file(self, tmp_path):
        draws = np.random.default_rng(1).normal([1.0, -0.5], 0.02, size=(1, 400, 2))
        data = {"x": np.append(X, [[30.0, 30.0]], axis=0), "y": np.append(DATA["y"], 300.0)}
        options = {"coreset": None, "draws": None, "reweight": True}
        with pytest.warns(UserWarning, match=r"the column pareto_k of .*loo\.parquet"):
            loo(MODEL, draws, data, to=tmp_path / "loo.parquet", **options)
        assert int(pd.read_parquet(tmp_path / "loo.parquet")["pareto_k"].argmax()) == SIZE


def test_totals_far_from_zero_keep_their_digits():
    """A sum of squares less N times the square of the mean would have lost them."""
    values = 1e9 + np.random.default_rng(0).normal(size=10_000)
    totals = Totals(values.size, 0.7, keeps_rows=False)
    for start in range(0, values.size, 1_024):
        part = values[start : start + 1_024]
        totals.add(part, part, np.zeros(part.size))
    assert totals.standard_error == pytest.approx(np.sqrt(values.size) * values.std(), rel=1e-6)
    naive = np.sqrt(abs(np.sum(values**2) - np.sum(values) ** 2 / values.size))
    assert naive != pytest.approx(totals.standard_error, rel=1e-2)


def test_blocks_are_short_where_draws_are_many():
    """4 000 draws of 2 048 rows never meet: at most 2^20 numbers do."""
    seen = []

    def watched(key, beta, rows):
        seen.append(rows["x"].shape[0])
        return {"y": rows["x"] @ beta + jax.random.normal(key, rows["x"].shape[:1])}

    draws = np.zeros((1, 4_000, 2))
    options = {"draws": 4_000, "quantiles": (), "var_names": None, "random_seed": 0}
    predict(replace(MODEL, predictive=watched), draws, {"x": X[:300]}, **options)
    assert max(seen) == 2 ** int(np.log2(2**20 / 4_000)) == 256


class TestFilesAndTables:
    def test_a_saved_fit_meets_its_rows_again(self, fitted, tmp_path):
        source = Streamed(DATA)
        loaded = cm.load(fitted.save(tmp_path / "fit.nc"), model=MODEL, data=source)
        assert loaded.own_rows is source
        assert source.reads == []
        assert loaded.reweight().settings == fitted.reweight().settings

    def test_other_columns_of_the_rows(self, fitted):
        coreset = fitted.coreset
        table = coreset.to_frame(Tabular(DATA))
        assert list(table["city"]) == [f"city {row}" for row in coreset.indices]
        np.testing.assert_array_equal(table["weight"], coreset.weights)
        pd.testing.assert_frame_equal(coreset.to_frame(Rows(Streamed(DATA))), coreset.to_frame())
        with pytest.raises(InputError, match="the 5000 rows that the coreset was made of"):
            coreset.to_frame(Streamed({"x": X[:10]}))

    def test_a_coreset_takes_its_rows(self):
        from coreset_mcmc.data.selection import SelectedRows

        source = Streamed(DATA)
        made = cm.Coreset.of(SelectedRows(np.array([4_000, 7]), np.array([2.0, 3.0])), Rows(source), {})
        np.testing.assert_array_equal(made.columns["x"], X[[4_000, 7]].astype(float))
        assert made.num_rows == SIZE
        assert sum(stop - start for start, stop in source.reads) == 512
