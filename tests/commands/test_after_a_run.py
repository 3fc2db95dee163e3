"""What can be asked of a finished run: predictions, a verdict, effects, leave-one-out."""

from __future__ import annotations

import json
import re
import shutil

import arviz_stats
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.results.effects import Effect, effect

SIZE = 300
SMALL = ["--method", "uniform", "--coreset-size", "60", "--draws", "60", "--tune", "40", "--chains", "2", "--seed", "1"]
QUICK = [*SMALL, "--no-trust", "--no-report"]


def table(seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": generator.normal(size=SIZE), "g": np.resize(["a", "b", "c"], SIZE)})
    frame["y"] = 1.0 + 0.5 * frame["x"] + (frame["g"] == "b") + generator.normal(size=SIZE)
    frame["z"] = generator.normal(size=SIZE)
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory, command):
    """A table, others to predict, and runs on it."""
    folder = tmp_path_factory.mktemp("after")
    table().to_parquet(folder / "table.parquet")
    new = table(seed=1).drop(columns="y")
    new.to_parquet(folder / "new.parquet")
    new.to_csv(folder / "new.csv", index=False)
    for name, formula in {"run": "y ~ x * g", "other": "y ~ x", "else": "z ~ x"}.items():
        outcome = command("fit", folder / "table.parquet", "-f", formula, *QUICK, "--out", folder / name)
        assert outcome.exit_code == 0, outcome.output
    return folder


def fit_of(place, name="run", formula="y ~ x * g") -> cm.Fit:
    return cm.load(place / name / "draws.nc", model=cm.from_formula(formula, pd.read_parquet(place / "table.parquet")))


@pytest.mark.full
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_predictions_are_those_of_python(place, command, tmp_path, suffix):
    out = tmp_path / f"made.{suffix}"
    outcome = command("predict", place / "run", place / f"new.{suffix}", "--out", out, "--draws", 50, "--interval", 0.8)
    assert outcome.exit_code == 0, outcome.output
    made = pd.read_parquet(out) if suffix == "parquet" else pd.read_csv(out)
    expected = fit_of(place).predict(table(seed=1), draws=50, quantiles=(0.1, 0.5, 0.9))
    for group, between in (("expected", "_expected_"), ("posterior_predictive", "_")):
        values = expected[group]["y"]
        for statistic in values["statistic"].to_numpy():
            known = values.sel(statistic=statistic)
            np.testing.assert_allclose(made[f"y{between}{statistic}"], known, rtol=1e-12)
    assert (made["y_q0.9"] - made["y_q0.1"] > made["y_expected_q0.9"] - made["y_expected_q0.1"]).all()
    assert "295 more rows" in outcome.output


@pytest.mark.full
def test_predictions_of_a_streamed_table_have_the_same_bits(place, command, tmp_path, monkeypatch):
    base = ["predict", place / "run", place / "new.parquet", "--draws", 20]
    command(*base, "--out", tmp_path / "memory.parquet")
    monkeypatch.setattr("coreset_mcmc.commands.budget.Budget.holds", lambda self, num_bytes: False)
    outcome = command(*base, "--out", tmp_path / "stream.parquet")
    assert outcome.exit_code == 0, outcome.output
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "stream"))
    pd.testing.assert_frame_equal(one, other)


PREDICT = {
    "a file that is there": (["new.parquet", "--out", "new.csv"], "a file that is there already"),
    "another format": (["new.parquet", "--out", "made.xlsx"], ".parquet or .csv"),
    "no format": (["new.parquet", "--out", "made"], "no suffix"),
    "a folder that is not there": (["new.parquet", "--out", "nowhere/made.csv"], "Make the folder first"),
    "no table": (["none.parquet", "--out", "made.csv"], "no such file"),
    "other columns": (["other_columns.csv", "--out", "made.csv"], "no column 'x'"),
    "a level that was not there": (["other_level.csv", "--out", "made.csv"], "(q) in 'g' are not present"),
    "missing values": (["missing.csv", "--out", "made.csv"], "missing values (x: 1"),
    "text for numbers": (["text.csv", "--out", "made.csv"], "column 'x': got values of type str"),
    "one draw": (["new.parquet", "--out", "made.csv", "--draws", "1"], "--draws: got 1"),
    "a wrong interval": (["new.parquet", "--out", "made.csv", "--interval", "89"], "--interval: got 89"),
    "a negative seed": (["new.parquet", "--out", "made.csv", "--seed", "-1"], "--seed: got -1"),
    "tables of two formats": (["new.parquet", "new.csv", "--out", "made.csv"], "files of one format"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", list(PREDICT))
def test_mistakes_in_predictions(place, command, name, monkeypatch):
    arguments, message = PREDICT[name]
    monkeypatch.chdir(place)
    new = table(seed=1).drop(columns="y")
    new.rename(columns={"x": "u"}).to_csv("other_columns.csv", index=False)
    new.assign(g="q").to_csv("other_level.csv", index=False)
    new.assign(x=new["x"].where(new.index != 7)).to_csv("missing.csv", index=False)
    new.assign(x="much").to_csv("text.csv", index=False)
    outcome = command("predict", "run", *arguments)
    assert outcome.exit_code == 2, outcome.output
    assert message in outcome.stderr
    assert not (place / "made.csv").exists()


RUNS = {
    "no folder": ("nothing", "no such folder"),
    "a folder without a run": (".", "no config.toml there"),
    "a table that has changed": ("changed", "other bytes than the run began with"),
    "a table that has gone": ("gone", "no such file"),
    "no draws": ("empty", "a run without draws"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", list(RUNS))
def test_runs_that_cannot_be_opened(place, command, name, tmp_path, monkeypatch):
    folder, message = RUNS[name]
    monkeypatch.chdir(tmp_path)
    shutil.copy(place / "new.parquet", tmp_path)
    if folder in ("changed", "gone", "empty"):
        shutil.copytree(place / "run", folder)
        config = tmp_path / folder / "config.toml"
        config.write_text(re.sub(r'path = ".*"', f'path = "{tmp_path}/table.parquet"', config.read_text()))
        table(seed=5 if folder == "changed" else 0).to_parquet("table.parquet")
    if folder == "gone":
        (tmp_path / "table.parquet").unlink()
    if folder == "empty":
        (tmp_path / folder / "draws.nc").unlink()
    for words in (["predict", folder, "new.parquet", "--out", "made.csv"], ["check", folder], ["effects", folder, "x"]):
        outcome = command(*words)
        assert outcome.exit_code == 2, outcome.output
        assert message in outcome.stderr, outcome.stderr


@pytest.mark.full
def test_a_verdict_for_a_run_that_was_made_without(place, command, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    assert json.loads((run / "summary.json").read_text())["verdict"] is None
    outcome = command("check", run, "--draws", 60, "--coresets", 1, "--no-half")
    assert outcome.exit_code == 0, outcome.output
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"] in ("good", "use with care", "do not use")
    assert summary["trust"]["num_draws"] == 60
    assert "Distance to the full posterior" in outcome.output
    assert "coresets = 1" in (run / "config.toml").read_text()
    again = command("check", run, "--draws", 50, "--require", "good")
    assert again.exit_code == (0 if json.loads((run / "summary.json").read_text())["verdict"] == "good" else 4)
    assert json.loads((run / "summary.json").read_text())["trust"]["num_draws"] == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draws", "3"], "[trust] draws: got 3"),
        (["--coresets", "0"], "[trust] coresets: got 0"),
        (["--seed", "-1"], "--seed"),
    ],
)
@pytest.mark.full
def test_mistakes_in_checks(place, command, arguments, message):
    outcome = command("check", place / "run", *arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


@pytest.mark.full
def test_effects_are_averages_of_predictions(place, command):
    """Over all rows with the column changed: what comes of predicting such tables, draw by draw."""
    outcome = command("effects", place / "run", "x", "g", "--draws", 40, "--step", 0.5, "--json")
    assert outcome.exit_code == 0, outcome.output
    by_x, by_g = (Effect.from_dict(values) for values in json.loads(outcome.stdout))
    fit, frame = fit_of(place), table()

    def average(changed: pd.DataFrame) -> np.ndarray:
        return fit.predict(changed, draws=40, quantiles=None)["expected"]["y"].to_numpy()[0].mean(axis=1)

    change = average(frame.assign(x=frame["x"] + 0.5)) - average(frame)
    known = [change.mean(), change.std(ddof=1), *np.quantile(change, [0.055, 0.945])]
    np.testing.assert_allclose(
        [getattr(by_x.changes[0], key) for key in ("mean", "sd", "lower", "upper")], known, rtol=1e-9
    )
    for estimate, level in zip(by_g.changes, "bc", strict=True):
        change = average(frame.assign(g=level)) - average(frame.assign(g="a"))
        assert estimate.label == f"{level} - a"
        assert estimate.mean == pytest.approx(change.mean(), rel=1e-9)
    assert by_x.num_rows == SIZE
    shown = command("effects", place / "run", "g", "--draws", 40)
    assert "b - a" in shown.output
    assert set(json.loads((place / "run" / "effects.json").read_text())) == {"x", "g"}


@pytest.mark.full
def test_effects_with_dropped_rows_and_filters(command, tmp_path):
    """The rows are those of the fit, whatever the column is changed to."""
    frame = table()
    frame.loc[::10, "x"] = np.nan
    frame.to_parquet(tmp_path / "table.parquet")
    words = ["fit", tmp_path / "table.parquet", "-f", "y ~ x + g", "--drop-missing", "--where", "x > -1", *QUICK]
    assert command(*words, "--out", tmp_path / "run").exit_code == 0
    outcome = command("effects", tmp_path / "run", "x", "--draws", 20, "--step", -5, "--json")
    (effect,) = json.loads(outcome.stdout)
    assert effect["num_rows"] == int((frame["x"] > -1).sum())
    slope = cm.load(tmp_path / "run" / "draws.nc").posterior["x"].to_numpy().ravel()
    chosen = slope.reshape(-1)[np.linspace(0, slope.size - 1, 20).astype(int)]
    assert effect["changes"][0]["mean"] == pytest.approx(-5 * chosen.mean(), abs=5 * slope.std())


EFFECTS = {
    "no such column": (["q"], "effect of 'q': got no such predictor"),
    "the response": (["y"], "no such predictor"),
    "another spelling": (["X"], "Did you mean 'x'?"),
    "a term": (["x:g"], "no such predictor"),
    "no step": (["x", "--step", "0"], "a number other than zero"),
    "a step that is no number": (["x", "--step", "nan"], "a number other than zero"),
    "one draw": (["x", "--draws", "1"], "draws: got 1"),
    "a wrong interval": (["x", "--interval", "2"], "interval: got 2"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", list(EFFECTS))
def test_mistakes_in_effects(place, command, name):
    arguments, message = EFFECTS[name]
    outcome = command("effects", place / "run", *arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


def test_models_without_a_table_have_no_effects():
    with pytest.raises(cm.InputError, match="a model by formula"):
        effect(cm.models.linear_regression(1), {"beta": np.zeros((2, 4, 1))}, "x")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_leave_one_out_is_that_of_arviz(place, command):
    outcome = command("compare", place / "run", place / "other", "--loo", "--draws", 120, "--json")
    assert outcome.exit_code == 0, outcome.output
    found = {score["run"]: score for score in json.loads(outcome.stdout)["loo"]}
    fits = {"run": fit_of(place), "other": fit_of(place, "other", "y ~ x")}
    peers = {str(place / name): fit.loo(draws=120, progressbar=False) for name, fit in fits.items()}
    theirs = arviz_stats.compare(peers, method="pseudo-BMA")
    for name, score in found.items():
        assert score["elpd"] == pytest.approx(peers[name].elpd, rel=1e-9)
        assert score["standard_error"] == pytest.approx(peers[name].se, rel=1e-9)
        assert abs(score["difference"]) == pytest.approx(abs(theirs.loc[name, "elpd_diff"]), abs=1e-6)
        assert score["difference_error"] == pytest.approx(theirs.loc[name, "dse"], abs=1e-6)
    shown = command("compare", place / "run", place / "other", "--loo", "--draws", 60)
    assert "Leave-one-out, best first" in shown.output


@pytest.mark.full
def test_leave_one_out_of_other_responses_is_refused(place, command):
    outcome = command("compare", place / "run", place / "else", "--loo", "--draws", 60)
    assert outcome.exit_code == 2
    assert "runs with the response in common" in outcome.stderr
    assert "The runs have different responses" in outcome.output
