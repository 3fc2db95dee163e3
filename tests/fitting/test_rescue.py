"""A target that trajectories of one length do not mix on is sampled by NUTS instead, by itself."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.driver.run import Run
from coreset_mcmc.fitting import rescue, stages
from coreset_mcmc.fitting.rescue import Mixing, mixing_of
from coreset_mcmc.methods.sampling import SamplingInfo, SamplingProblem
from coreset_mcmc.methods.tuned_sampling import NUM_TUNING, TunedSampling
from coreset_mcmc.models.unidentified import log_density_of_a_factor

NUM_GROUPS = 8
"""The package shows the function under the name of its module."""


def funnel_model() -> cm.Model:
    """Eight effects with an unknown spread, centred, and too few rows to inform them: a funnel."""

    def log_prior(position):
        spread, effects = position["log_spread"], position["effects"]
        return -0.5 * (spread / 1.5) ** 2 - NUM_GROUPS * spread - 0.5 * jnp.sum((effects * jnp.exp(-spread)) ** 2)

    def log_likelihood(position, batch):
        return -0.5 * ((batch["y"] - position["effects"][batch["group"]]) / 10.0) ** 2

    start = {"effects": np.full(NUM_GROUPS, 0.1), "log_spread": np.zeros(())}
    return cm.Model(log_prior, log_likelihood, initial_position=start, name="funnel")


@pytest.fixture
def funnel_data(rng):
    group = np.arange(400) % NUM_GROUPS
    return {"group": group, "y": rng.normal(size=400) * 10.0}


def info(position, diverging=False):
    nothing = jnp.zeros(position.shape[:2])
    return SamplingInfo({"x": position}, nothing, nothing, np.full(position.shape[:2], diverging), nothing, 0, 0)


def test_mixing_is_judged_within_chains(rng):
    fresh = rng.normal(size=(500, 2, 3))
    assert not mixing_of(info(fresh)).is_poor
    apart = fresh + 100.0 * np.arange(2)[None, :, None]
    assert not mixing_of(info(apart)).is_poor, "two modes are not for another sampler to join"
    crawling = np.cumsum(rng.normal(size=(500, 2, 3)), axis=0)
    assert mixing_of(info(crawling)).is_poor
    assert mixing_of(info(fresh, diverging=True)).is_poor
    assert not mixing_of(info(crawling[:50])).is_poor, "too few draws to tell"
    assert mixing_of(info(np.zeros((200, 2, 1)))).is_poor, "chains that never move"
    assert Mixing(99.0, 1_000, 0.0).is_poor
    assert not Mixing(101.0, 1_000, 0.0).is_poor
    assert Mixing(500.0, 1_000, 0.008).is_poor, "divergences keep draws from the ends of a ridge"
    assert Mixing(500.0, 1_000, 0.008).diverges


def test_a_window_with_few_draws_does_not_shape_trees(monkeypatch):
    """Forty coordinates, one chain, half of each window kept: 30 and 60 draws are too few, 120 are enough."""
    scales = []

    def made_up(trees, problem, key, *, num_steps, **options):
        scales.append(np.asarray(trees.scale))
        draws = np.random.default_rng(num_steps).normal(size=(num_steps, 1, 40))
        chains = SimpleNamespace(position={"x": draws[-1]})
        nothing = {"record": None, "num_evaluations": 0, "seconds": 0.0, "compile_seconds": 0.0, "reason": "done"}
        return Run(
            SimpleNamespace(chains=chains), info(draws), num_steps=num_steps, step_seconds=np.zeros(1), **nothing
        )

    monkeypatch.setattr(rescue, "run", made_up)
    problem = SamplingProblem(None, {"x": np.zeros((1, 40))})
    sampler = TunedSampling(2.0 * jnp.eye(40))
    rescue.sample_by_trees(jax.random.key(0), sampler, problem, diverges=False, tune=0, draws=1, progressbar=False)
    for scale in scales[:3]:
        np.testing.assert_array_equal(scale, 2.0 * np.eye(40))
    assert np.abs(scales[3] - 2.0 * np.eye(40)).max() > 0.5


@pytest.mark.full
def test_draws_reach_the_ends_of_a_ridge():
    """Two factors of which the data tell the product: with larger steps their spread is an eighth too small."""
    data = cm.models.unidentified_regression_data(np.random.default_rng(5), 50_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            cm.models.unidentified_regression(), data, coreset_size=200, draws=1_500, random_seed=1, progressbar=False
        )
    draws = np.abs(fitted.posterior["factors"].to_numpy())
    grid = np.linspace(1e-3, 6.0, 20_001)
    log_density = log_density_of_a_factor(grid, data)
    density = np.exp(log_density - log_density.max())
    mean = np.sum(grid * density) / np.sum(density)
    moment = np.sum((grid - mean) ** 2 * density) / np.sum(density)
    fourth = np.sum((grid - mean) ** 4 * density) / np.sum(density)
    squares = (draws - mean) ** 2
    for number in range(2):
        ess = float(cm.metrics.bulk_ess(squares[..., number, None])[0])
        error = np.sqrt((fourth - moment**2) / ess)
        assert squares[..., number].mean() == pytest.approx(moment, abs=4.0 * error)
        assert squares[..., number].mean() > 0.8 * moment, "larger steps: 0.75"


@pytest.mark.full
def test_a_funnel_is_rescued(funnel_data):
    """The marginal of log_spread against trapezoidal quadrature: given the spread, effects integrate out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            funnel_model(), funnel_data, coreset_size=400, draws=1_000, tune=200, random_seed=1, progressbar=False
        )
    stats = fitted.tree["sample_stats"]
    spread = fitted.posterior["log_spread"].to_numpy()
    weights = fitted.coreset.weights
    grid = np.linspace(-8.0, 8.0, 4_001)
    log_density = -0.5 * (grid / 1.5) ** 2
    for number in range(NUM_GROUPS):
        is_mine = funnel_data["group"][fitted.coreset.indices] == number
        precision = weights[is_mine].sum() / 100.0
        slope = weights[is_mine] @ funnel_data["y"][fitted.coreset.indices][is_mine] / 100.0
        total = precision + np.exp(-2.0 * grid)
        log_density += -grid - 0.5 * np.log(total) + 0.5 * slope**2 / total
    density = np.exp(log_density - log_density.max())
    mean = np.sum(grid * density) / np.sum(density)
    deviation = np.sqrt(np.sum((grid - mean) ** 2 * density) / np.sum(density))
    assert fitted.sampling.num_evaluations > 400 * 4 * 1_200 * 2, "trees take more gradients than quarter periods"
    ess = float(cm.metrics.bulk_ess(spread[..., None])[0])
    assert ess > 100
    assert spread.mean() == pytest.approx(mean, abs=4.5 * deviation / np.sqrt(ess))
    assert stats["diverging"].mean() < 0.01


@pytest.mark.full
def test_what_mixes_is_left_alone(rng, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("not needed")

    monkeypatch.setattr(stages, "sample_by_trees", refuse)
    x = rng.normal(size=(300, 1))
    data = {"x": x, "y": (rng.random(300) < 0.5).astype(float)}
    fitted = cm.fit(
        cm.models.logistic_regression(1), data, coreset_size=60, draws=200, tune=50, random_seed=1, progressbar=False
    )
    assert fitted.sampling.num_steps == 200 + NUM_TUNING


@pytest.mark.full
def test_worse_draws_are_not_taken(funnel_data, monkeypatch):
    """Trees that did not move at all lose against whatever was there."""
    calls = []

    def stuck(key, sampler, problem, **options):
        calls.append(options)
        run = rescue.sample_by_trees(key, sampler, problem, **{**options, "draws": 150, "tune": 0})
        frozen = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:1], leaf.shape), run.history.position)
        return type(run)(**{**run.__dict__, "history": run.history._replace(position=frozen)})

    monkeypatch.setattr(stages, "mixing_of", _always_poor)
    monkeypatch.setattr(stages, "sample_by_trees", stuck)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            funnel_model(), funnel_data, coreset_size=400, draws=150, tune=0, random_seed=1, progressbar=False
        )
    assert len(calls) == 1
    assert np.ptp(fitted.posterior["log_spread"].to_numpy()) > 0


@pytest.mark.full
def test_an_interrupted_rescue_does_not_cost_the_draws_there_were(funnel_data, monkeypatch):
    """Ctrl-C in the first steps of the trees: of those few draws nothing can be said, so they may not win."""

    def interrupted(key, sampler, problem, **options):
        run = rescue.sample_by_trees(key, sampler, problem, **{**options, "draws": 5, "tune": 0})
        return replace(run, reason="interrupted")

    monkeypatch.setattr(stages, "mixing_of", _poor_at_first)
    monkeypatch.setattr(stages, "sample_by_trees", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            funnel_model(), funnel_data, coreset_size=400, draws=150, tune=0, random_seed=1, progressbar=False
        )
    assert fitted.posterior.sizes["draw"] == 150


def _poor_at_first(history):
    found = mixing_of(history)
    return found._replace(diverging=1.0) if found.num_draws == 150 else found


def _always_poor(history):
    return mixing_of(history)._replace(diverging=1.0)


@pytest.mark.full
def test_a_mode_on_the_border_of_the_support_is_left_to_slices():
    """A location that may not be negative, with data that want it to be: an exponential tail from zero on."""
    data = {"y": np.random.default_rng(0).normal(-0.3, 1.0, 1_000)}
    model = cm.Model(
        lambda position: jnp.where(position["location"] >= 0, 0.0, -jnp.inf),
        lambda position, batch: -0.5 * (batch["y"] - position["location"]) ** 2,
        {"location": 0.5},
    )
    fitted = cm.fit(model, data, coreset_size=60, draws=1_000, random_seed=1, progressbar=False)
    draws = fitted.posterior["location"].to_numpy()
    grid = np.linspace(0.0, 0.2, 20_001)
    log_density = -500.0 * (grid - data["y"].mean()) ** 2
    density = np.exp(log_density - log_density.max())
    mean = np.sum(grid * density) / np.sum(density)
    deviation = np.sqrt(np.sum((grid - mean) ** 2 * density) / np.sum(density))
    ess = float(cm.metrics.bulk_ess(draws[..., None])[0])
    assert int(fitted.tree["sample_stats"]["diverging"].sum()) == 0
    assert ess > 400
    assert draws.min() >= 0
    assert draws.mean() == pytest.approx(mean, abs=deviation * (4.5 / np.sqrt(ess) + np.sqrt(2 * fitted.kl_estimate)))
