"""The reproduction as a person runs it: jobs, table, resumption, figures."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter

import jax
import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from coreset_mcmc.commands import cli
from coreset_mcmc.commands.terminal import EXIT_USER_ERROR
from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.datasets import RegressionData
from coreset_mcmc.datasets.paper import DATA_VARIABLE
from coreset_mcmc_benchmarks.paper import cases, command, figures
from coreset_mcmc_benchmarks.paper import measure as measuring
from coreset_mcmc_benchmarks.paper.budget import FULL, QUICK
from coreset_mcmc_benchmarks.paper.figures import FIGURES, draw_figures
from coreset_mcmc_benchmarks.paper.gaussian import FEW_VARIANTS, VARIANTS
from coreset_mcmc_benchmarks.paper.jobs import EXPERIMENTS, Job, all_jobs, expected_seconds
from coreset_mcmc_benchmarks.paper.left import wanted_jobs
from coreset_mcmc_benchmarks.paper.measure import Setup, measure
from coreset_mcmc_benchmarks.paper.plan import Contestant, Plan
from coreset_mcmc_benchmarks.paper.references import Reference
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS, FULL_DATA_RATES, nearest_rate
from coreset_mcmc_benchmarks.paper.summary import write_summary
from coreset_mcmc_benchmarks.paper.table import curves_table, read_runs, runs_table

runner = CliRunner()


def test_all_jobs_of_the_paper_are_there_once():
    jobs = all_jobs(EXPERIMENTS, list(CONTESTANTS), FULL.coreset_sizes, FULL.repeats)
    assert len(set(jobs)) == len(jobs)
    per_seed = 3 * (10 * 6 + 10) + (8 * 6 + 2)
    assert len(jobs) == len(VARIANTS) + 10 * per_seed
    assert not [job for job in jobs if job.experiment == "sparse" and CONTESTANTS[job.method].needs_gradient]


def test_a_quick_run_has_every_row_once_and_published_rows_on_every_problem():
    jobs = all_jobs(EXPERIMENTS[1:], list(CONTESTANTS), QUICK.coreset_sizes, 1, is_complete=False)
    counts = Counter(job.method for job in jobs)
    for method, contestant in CONTESTANTS.items():
        everywhere = 3 if contestant.needs_gradient else 4
        assert counts[method] == (1 if contestant.is_extra else everywhere)


def test_without_repeats_what_the_comparison_wants_is_run(tmp_path, monkeypatch):
    """The same jobs that the page counts: not ten seeds of everything."""
    asked = []
    monkeypatch.setattr(command, "_run", lambda console, jobs, *others: asked.extend(jobs) or 0)
    command._run_missing(Console(quiet=True), command.Request(experiments=["sparse"], out=tmp_path))
    assert set(asked) == {job for job in wanted_jobs() if job.experiment == "sparse"}
    assert max(Counter((job.method, job.coreset_size) for job in asked).values()) == 10
    asked.clear()
    command._run_missing(Console(quiet=True), command.Request(experiments=["sparse"], repeats=4, out=tmp_path))
    assert len(asked) == 4 * (8 * 6 + 2)


def test_every_figure_panel_has_a_quick_curve():
    panels = {(variant.panel, variant.feasible_set) for variant in FEW_VARIANTS}
    assert panels == {(variant.panel, variant.feasible_set) for variant in VARIANTS}


def test_expected_time_grows_with_the_work():
    few = all_jobs(["poisson"], ["coreset-mcmc"], [50], 1)
    many = all_jobs(["poisson"], ["coreset-mcmc"], [50], 3)
    assert expected_seconds(many, FULL) == pytest.approx(3 * expected_seconds(few, FULL))
    assert expected_seconds(few, QUICK) < expected_seconds(few, FULL)


def test_rates_between_the_papers_sizes_come_from_the_nearest():
    rates = FULL_DATA_RATES["poisson"]
    assert nearest_rate(rates, 500) == 0.01
    assert nearest_rate(rates, 300) == 0.05
    assert nearest_rate(rates, 400) == 0.01


def row(job, **values):
    return {**job._asdict(), "coreset_size": job.coreset_size or "", "label": "published", **values}


def test_a_table_knows_what_is_missing(tmp_path):
    jobs = all_jobs(["linear"], ["uniform", "sgld-cv"], [50], 2)
    table = runs_table(tmp_path)
    table.append(row(jobs[0], kl=1.0), row(jobs[1], failure="it broke"))
    assert table.missing(jobs) == jobs[2:]


def test_a_table_of_another_version_is_refused(tmp_path):
    table = runs_table(tmp_path)
    table.path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="columns"):
        table.missing([])


@pytest.fixture
def setup(tmp_path):
    return Setup(QUICK, None, tmp_path / "references")


@pytest.mark.full
def test_a_failed_run_is_a_row_that_says_so(setup, monkeypatch):
    def refuse(*arguments, **options):
        raise RunError("a chain was lost")

    monkeypatch.setattr(measuring, "fit", refuse)
    monkeypatch.setattr(measuring, "reference_of", lambda *arguments: type("Reference", (), {"key": "r"}))
    made, points = measure(Job("sparse", "uniform", 50, 1), setup)
    assert made["failure"] == "a chain was lost"
    assert "kl" not in made
    assert points == []


@pytest.mark.full
def test_counts_of_the_same_shape_run_like_the_authors(setup, monkeypatch, counts_like_the_papers):
    """The Poisson experiment without the authors' file."""
    counts = counts_like_the_papers
    table = RegressionData(counts["x"], counts["y"], tuple(f"x{number}" for number in range(8)))
    monkeypatch.setattr(cases, "bike_share_counts", lambda folder: table)
    nothing = np.zeros((0, 0), int)
    target = Reference("r", np.ones(9), np.eye(9), nothing, nothing, {})
    monkeypatch.setattr(measuring, "reference_of", lambda *arguments: target)
    fast = dataclasses.replace(setup, budget=dataclasses.replace(QUICK, kept=100))
    made, _ = measure(Job("poisson", "uniform", 50, 1), fast)
    assert "failure" not in made
    assert made["rows"] == len(counts["y"])
    assert np.isfinite(made["kl"])


@pytest.mark.parametrize("name", [name for name, one in CONTESTANTS.items() if one.best_of])
def test_plans_at_their_best_say_where_steps_come_from(setup, name):
    """From the curvature at the mode of all rows; nothing is told about the posterior."""
    case = measuring.case_of("linear", setup)
    with jax.enable_x64(True):
        plan = CONTESTANTS[name].plan(case, QUICK, 50, 1)
    assert plan.label == "at its best"
    assert json.loads(measuring.settings_of(plan))["method"]["is"]
    assert "0x" not in measuring.settings_of(plan)


def test_settings_in_a_row_can_be_read(setup):
    case = measuring.case_of("sparse", setup)
    for name in ("coreset-mcmc", "coreset-mcmc-s-published", "uniform", "austerity-mh"):
        plan = CONTESTANTS[name].plan(case, QUICK, 50, 1)
        assert "SpikeAndSlab" in measuring.settings_of(plan)
        assert "0x" not in measuring.settings_of(plan)


@pytest.fixture
def made_up_tables(tmp_path, rng):
    """Runs of every method with numbers out of the air, one failure, and two curves for each panel."""
    jobs = all_jobs(EXPERIMENTS[1:], list(CONTESTANTS), [50, 500], 2)
    metrics = ["kl", "mean_error", "covariance_error", "min_ess", "ess_per_second", "training_seconds", "evaluations"]
    rows = [row(job, **{name: float(rng.lognormal()) for name in metrics}) for job in jobs]
    for made in rows:
        if made["experiment"] == "sparse":
            made |= {"js": 0.1, "discrete_ess_per_second": 10.0}
    rows[0] = row(jobs[0], failure="lost")
    rows[1]["kl"] = float("inf")
    runs_table(tmp_path).append(*rows)
    for variant in FEW_VARIANTS:
        points = [{"variant": variant.name, "iteration": t, "cost": 10.0 * t, "kl": 100.0 / t} for t in (1, 10, 100)]
        curves_table(tmp_path).append(*points)
    return tmp_path


@pytest.mark.full
@pytest.mark.parametrize(
    "names", [["figure-2", "figure-6"], pytest.param(list(FIGURES), marks=pytest.mark.slow)], ids=["two", "all"]
)
def test_figures_come_from_the_tables_alone(names, made_up_tables, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {name: FIGURES[name] for name in names})
    paths = draw_figures(made_up_tables)
    assert [path.stem for path in paths] == names
    assert all(path.stat().st_size > 20_000 for path in paths)


def test_summary_counts_failures_and_shows_the_authors_numbers(made_up_tables):
    text = write_summary(made_up_tables).read_text()
    assert "(2, 1 failed)" in text
    assert "| *authors' mean* | *oracle-tuned* | 4.79e+03 | 1.89 |" in text


def test_failures_do_not_enter_the_medians(made_up_tables):
    runs = read_runs(made_up_tables)
    assert runs["failure"].notna().sum() == 1
    assert np.isinf(pd.to_numeric(runs["kl"])).sum() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment", "cubic"], "one of gaussian"),
        (["--method", "magic"], "one of coreset-mcmc"),
        (["--coreset-sizes", "ten"], "whole numbers"),
        (["--coreset-sizes", "1"], "at least 2"),
        (["--repeats", "0"], "at least 1"),
        (["--figures-only"], "table of runs"),
        (["--experiment", "poisson", "--data", "broken"], "SHA-256"),
    ],
)
def test_mistakes_are_told_before_any_work(tmp_path, arguments, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "poisson_reg.csv").write_text("1\n")
    result = runner.invoke(cli.app, ["bench", "paper", "--quick", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == EXIT_USER_ERROR
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.full
@pytest.mark.parametrize(
    "experiments",
    [["gaussian"], pytest.param(EXPERIMENTS, marks=pytest.mark.slow)],
    ids=["closed form", "all"],
)
def test_quick_reproduction_runs_everything_and_a_second_call_does_nothing(experiments, tmp_path):
    """Every method and figure of these experiments, small; Poisson only where the authors' file is at hand."""
    experiments = [name for name in experiments if name != "poisson" or DATA_VARIABLE in os.environ]
    arguments = ["bench", "paper", "--quick", "--workers", "1", "--out", str(tmp_path)]
    arguments += ["--experiment", ",".join(experiments)]
    result = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    runs = read_runs(tmp_path)
    jobs = all_jobs(experiments, list(CONTESTANTS), QUICK.coreset_sizes, 1, is_complete=False)
    assert len(runs) == len(jobs)
    assert runs["failure"].isna().all(), runs["failure"].dropna().to_list()
    assert runs["kl"].notna().all()
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn <= set(FIGURES)
    assert len(drawn) == len(FIGURES) or len(experiments) < len(EXPERIMENTS)
    before = runs_table(tmp_path).path.read_bytes()
    again = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert f"{len(jobs)} runs asked for, {len(jobs)} already" in " ".join(again.output.split())
    assert runs_table(tmp_path).path.read_bytes() == before


def test_contestants_have_titles_and_plans():
    assert all(isinstance(entry, Contestant) and entry.title for entry in CONTESTANTS.values())
    assert Plan("oracle-tuned", {}).label in {"oracle-tuned", "published", "untuned"}
