"""The comparison of speed as a person runs it: jobs, peers, references, table, resumption, page."""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import log_density
from typer.testing import CliRunner

from coreset_mcmc.commands import cli
from coreset_mcmc.commands.terminal import EXIT_USER_ERROR
from coreset_mcmc.core.errors import InputError
from coreset_mcmc_benchmarks.speed import processes
from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.command import REPEATS, expected_seconds
from coreset_mcmc_benchmarks.speed.contestants import CONTESTANTS, OTHER_LIBRARIES, Job, all_jobs
from coreset_mcmc_benchmarks.speed.effort import FEWEST_FOR_ESS, FULL
from coreset_mcmc_benchmarks.speed.judging import judged
from coreset_mcmc_benchmarks.speed.moments import moments
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.page import summarised, write_page
from coreset_mcmc_benchmarks.speed.peers import PEERS
from coreset_mcmc_benchmarks.speed.picture import COLOURS, draw_picture
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS
from coreset_mcmc_benchmarks.speed.table import TABLE, read_table, speed_table
from coreset_mcmc_benchmarks.symmetries import first_factor_positive, sorted_by_mean

runner = CliRunner()


def test_all_jobs_are_there_once_and_suit_their_problem():
    jobs = all_jobs(list(PROBLEMS), list(CONTESTANTS), 2)
    assert len(set(jobs)) == len(jobs)
    assert {job.contestant for job in jobs if job.problem == "sparse"} == {"ours", "published"}
    assert {job.problem for job in jobs if job.contestant == "nutpie-jax"} == set(OTHER_LIBRARIES)
    assert {job.seed for job in jobs if job.contestant == "published"} == {1}
    assert {job.problem for job in jobs if job.contestant == "published"} == {"poisson", "linear", "logistic", "sparse"}
    assert {job.problem for job in jobs if job.contestant == "ours"} == set(PROBLEMS)


def test_everyone_runs_before_anyone_runs_again():
    jobs = all_jobs(["logistic", "poisson"], ["laplace", "ours", "nuts"], 3)
    names = ["ours", "nuts", "laplace"]
    assert jobs == [
        Job(problem, name, seed) for problem in ("poisson", "logistic") for seed in (1, 2, 3) for name in names
    ]


def test_three_repeats_are_expected_to_take_less_than_eighty_minutes():
    jobs = all_jobs(list(PROBLEMS), list(CONTESTANTS), REPEATS)
    assert sum(expected_seconds(job, PROBLEMS[job.problem].rows) for job in jobs) < 80 * 60


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].has_peer and name != "poisson"])
def test_peers_have_the_same_posterior(name, rng):
    """Log-densities at random points differ by one constant; the points are spread like a prior."""
    problem = PROBLEMS[name]
    data = problem.load(None, 500)
    _same_log_densities(problem, data, rng)


def test_the_poisson_peer_has_the_same_posterior(rng, counts_like_the_papers):
    _same_log_densities(PROBLEMS["poisson"], counts_like_the_papers, rng)


def _same_log_densities(problem, data, rng):
    model = problem.model(data)
    start = model.initial_position
    start = start(jax.random.key(0)) if callable(start) else start
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, start))
    arrays = {name: jnp.asarray(values) for name, values in data.items()}
    differences = []
    for _ in range(5):
        position = unravel(jnp.asarray(0.5 * rng.normal(size=flat.size)))
        ours = model.log_prior(position) + jnp.sum(model.log_likelihood(position, arrays))
        theirs, _ = log_density(PEERS[problem.kind], (arrays,), {}, position)
        differences.append(float(ours - theirs))
    assert np.ptp(differences) < 1e-8 * max(1.0, np.max(np.abs(differences)))


def test_folding_keeps_the_posterior_and_one_copy(rng):
    draws = {name: rng.normal(size=(2, 50, 2)) for name in ("means", "log_scales", "logits")}
    folded = sorted_by_mean(draws)
    assert np.all(np.diff(folded["means"], axis=-1) >= 0)
    np.testing.assert_allclose(
        (folded["means"] * folded["logits"]).sum(axis=-1), (draws["means"] * draws["logits"]).sum(axis=-1)
    )
    factors = {"factors": rng.normal(size=(2, 50, 2)), "slope": rng.normal(size=(2, 50))}
    positive = first_factor_positive(factors)["factors"]
    assert np.all(positive[..., 0] > 0)
    np.testing.assert_allclose(positive.prod(axis=-1), factors["factors"].prod(axis=-1))


def test_the_exact_reference_knows_what_the_data_identify(tmp_path):
    """Slope and its deviation against the conjugate regression with the product as a free coefficient."""
    data = PROBLEMS["unidentified"].load(None, 2_000)
    made = moments("unidentified", data, tmp_path, 1_000)
    precision = np.eye(2) + data["x"].T @ data["x"]
    slope = np.linalg.solve(precision, data["x"].T @ data["y"])[1]
    deviation = np.sqrt(np.linalg.inv(precision)[1, 1])
    assert made.mean[2] == pytest.approx(slope, abs=5 * deviation / np.sqrt(10_000))
    assert np.sqrt(made.covariance[2, 2]) == pytest.approx(deviation, rel=5 / np.sqrt(20_000))
    assert moments("unidentified", data, tmp_path, 1_000).key == made.key
    assert len(list(tmp_path.glob("*.npz"))) == 1


def outcome(draws, sampling_seconds):
    return Outcome({"beta": draws}, 1.0, 1.0, sampling_seconds, 100.0)


def test_time_is_scaled_to_the_effective_draws_and_says_so(rng):
    draws = rng.normal(size=(4, 500, 2))
    made = judged(outcome(draws, 3.0), 10.0, None, {"beta": draws})
    assert made["scaled"] == "scaled"
    assert made["seconds_to_effective"] == pytest.approx(7.0 + 3.0 * 10_000 / made["min_ess"])
    few = judged(outcome(draws[:, :20], 3.0), 10.0, None, {"beta": draws[:, :20]})
    assert few["min_ess"] == 80
    assert "one effective draw" in few["scaled"]


def test_a_clock_parts_compilation_from_running():
    with timed() as first:
        jax.jit(lambda x: jnp.sin(x) * 17.3)(jnp.arange(5.0)).block_until_ready()
    assert 0 < first.compile_seconds <= first.seconds
    with timed() as second:
        pass
    assert second.compile_seconds == 0


def test_few_draws_where_each_takes_long():
    assert FULL.nuts_steps(15_641, 9)[1] > FULL.nuts_steps(10**6, 11)[1] > FULL.nuts_steps(10**7, 11)[1]
    assert FULL.nuts_steps(10**6, 11)[1] > FULL.nuts_steps(10**6, 50)[1]
    assert FULL.pymc_steps(15_641, 9)[1] > FULL.pymc_steps(98_673, 11)[1]
    assert 2 * FULL.pymc_steps(98_673, 11)[1] >= FEWEST_FOR_ESS
    assert FULL.weighted_draws(10**4) == FULL.kept
    assert FULL.weighted_draws(10**7) == 100


def row(job, **values):
    return {**job._asdict(), "rows": PROBLEMS[job.problem].rows, "dimension": 11, **values}


@pytest.fixture
def made_up_table(tmp_path):
    """Numbers out of the air: ours loses to Laplace once, is far off once, and one peer was stopped."""
    good = {"training_seconds": 1.0, "training_seconds_cold": 5.0, "kl_kind": "two-moment", "kl_floor": 0.01}
    rows = [
        row(Job("poisson", "ours", 1), **good, seconds_to_effective=10.0, kl=0.02, coreset_size=500),
        row(Job("poisson", "published", 1), **good | {"training_seconds": 300.0}, seconds_to_effective=400.0, kl=1.6),
        row(Job("poisson", "nuts", 1), **good, seconds_to_effective=200.0, kl=0.01, scaled="scaled"),
        row(Job("simulated-1e5", "ours", 1), **good, seconds_to_effective=10.0, kl=0.02),
        row(Job("simulated-1e5", "laplace", 1), **good, seconds_to_effective=4.0, kl=0.02),
        row(Job("simulated-1e5", "pathfinder", 1), **good, seconds_to_effective=3.0, kl=2.0),
        row(Job("simulated-1e5", "nuts", 1), failure="stopped after 600 s"),
        row(Job("hierarchical", "ours", 1), **good, seconds_to_effective=10.0, kl=5.0),
    ]
    speed_table(tmp_path).append(*rows)
    return tmp_path


def test_page_has_ratios_failures_and_where_we_lose(made_up_table):
    text = write_page(made_up_table).read_text()
    ours = next(line for line in text.splitlines() if line.startswith("| cm.fit | 500"))
    assert "| 20 | 300 |" in ours
    losses = text.partition("## Where we lose")[2].partition("## Goals")[0]
    assert "Laplace + PSIS takes 4 s" in losses
    assert "hierarchical: ours is 5 nats away" in losses
    assert "Pathfinder" not in losses
    assert "failed: stopped after 600 s" in text


def test_the_page_has_medians_ranges_and_marks_what_was_disturbed(made_up_table):
    good = {"training_seconds": 1.0, "training_seconds_cold": 5.0, "kl": 0.02}
    speed_table(made_up_table).append(
        row(Job("poisson", "ours", 2), **good, seconds_to_effective=12.0, other_load=0.1),
        row(Job("poisson", "ours", 3), **good, seconds_to_effective=30.0, other_load=0.6),
    )
    ours = next(
        line for line in write_page(made_up_table).read_text().splitlines() if line.startswith("| cm.fit | 500")
    )
    assert "| 12 (10 to 30) |" in ours
    assert "| 1 | 5 |" in ours
    assert "busy: others used 0.6 cores" in ours


def test_the_goals_stand_below_where_we_lose(made_up_table):
    text = write_page(made_up_table).read_text()
    assert text.index("## Where we lose") < text.index("## Goals") < text.index("## poisson")


def test_an_old_table_is_read_but_not_added_to(made_up_table):
    path = made_up_table / TABLE
    new = pd.read_csv(path, dtype="string")
    new.drop(columns=["load_before", "load_after", "other_load"]).to_csv(path, index=False)
    table = read_table(made_up_table)
    assert table["other_load"].isna().all()
    assert len(table) == len(new)
    assert "load of the machine is not recorded" in write_page(made_up_table).read_text()
    with pytest.raises(InputError, match="Use another --out folder"):
        speed_table(made_up_table).append(row(Job("poisson", "ours", 9)))


@pytest.mark.full
def test_the_command_says_where_we_lose(made_up_table):
    result = runner.invoke(cli.app, ["bench", "speed", "--figures-only", "--out", str(made_up_table)])
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert "Laplace + PSIS takes 4 s" in text
    assert "hierarchical: ours is 5 nats away" in text


def test_picture_comes_from_the_table_alone(made_up_table):
    assert draw_picture(made_up_table).stat().st_size > 10_000
    assert set(COLOURS) == set(CONTESTANTS)


def test_failed_seeds_do_not_enter_the_medians(made_up_table):
    job = Job("poisson", "ours", 2)
    speed_table(made_up_table).append(row(job, failure="lost"))
    ours = summarised(made_up_table).query("problem == 'poisson' and contestant == 'ours'").iloc[0]
    assert ours["seconds_to_effective"] == 10.0
    assert (ours["num_failed"], ours["num_runs"]) == (1, 2)
    assert speed_table(made_up_table).missing([job, Job("poisson", "ours", 3)]) == [Job("poisson", "ours", 3)]


@pytest.mark.full
def test_a_process_that_takes_too_long_or_dies_says_so(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.zeros(3))
    task = {"data": str(tmp_path / "data.npz"), "libraries": [], "work": "nothing"}
    with pytest.raises(processes.ChildError, match="nothing"):
        processes.answer_of(task, tmp_path, 120.0)
    with pytest.raises(processes.TimeUpError):
        processes.answer_of(task, tmp_path, 0.01)


def test_a_clock_without_jax_does_not_know_what_was_compiled(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    with timed() as stage:
        time.sleep(0.01)
    assert np.isnan(stage.compile_seconds)
    assert stage.running_seconds == stage.seconds > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problem", "cubic"], "one of poisson"),
        (["--contestant", "magic"], "one of ours"),
        (["--repeats", "0"], "at least 1"),
        (["--time-limit", "0"], "--time-limit"),
        (["--figures-only"], "table of runs"),
        (["--problem", "sparse", "--contestant", "nuts"], "suits a problem"),
    ],
)
def test_mistakes_are_told_before_any_work(tmp_path, arguments, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(cli.app, ["bench", "speed", "--quick", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == EXIT_USER_ERROR
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.full
@pytest.mark.parametrize(
    ("problems", "contestants"),
    [
        (["simulated-1e5"], ["ours"]),
        pytest.param(["simulated-1e5", "sparse"], list(CONTESTANTS), marks=pytest.mark.slow),
    ],
    ids=["ours", "all"],
)
def test_quick_comparison_runs_and_a_second_call_does_nothing(problems, contestants, tmp_path):
    """Contestants, each in a process of its own, on small problems."""
    arguments = ["bench", "speed", "--quick", "--problem", ",".join(problems), "--out", str(tmp_path)]
    arguments += ["--contestant", ",".join(contestants), "--repeats", "1"]
    result = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    table = read_table(tmp_path)
    assert table["failure"].isna().all(), table["failure"].dropna().to_list()
    expected = all_jobs(problems, contestants, 1, is_quick=True)
    assert len(table) == len(expected)
    assert (pd.to_numeric(table["seconds_to_effective"]) > pd.to_numeric(table["training_seconds"])).all()
    before = (tmp_path / TABLE).read_bytes()
    again = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert f"{len(expected)} runs asked for, {len(expected)} already" in " ".join(again.output.split())
    assert (tmp_path / TABLE).read_bytes() == before
    assert (tmp_path / "speed.png").stat().st_size > 10_000
