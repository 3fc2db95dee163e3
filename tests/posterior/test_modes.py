"""The search for modes: what one start misses is found, ranked by its mass, and copies are known as copies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.posterior.by_passes import FullPosterior, flat_position
from coreset_mcmc.posterior.modes import sample
from coreset_mcmc.posterior.modes.found import Mode, Modes
from coreset_mcmc.posterior.modes.looking import find_modes
from coreset_mcmc.posterior.modes.symmetry import copies, proposed_maps, symmetries
from coreset_mcmc.posterior.newton import NewtonSearch
from coreset_mcmc.posterior.problem import starting_positions
from tests.helpers.several_modes import clusters, factors, frequency, narrow_and_broad, share_of_positive

SEARCH = NewtonSearch(max_iterations=50, tolerance=0.3)
CASES = {
    "clusters": (clusters, "centre", 0.0),
    "frequency": (frequency, "frequency", 1.7),
    "narrow": (narrow_and_broad, "theta", 3.3),
}


def look(model, data, seed=0, **options):
    with jax.enable_x64(True):
        positions = starting_positions(model, jax.random.key(0), 2)
        return find_modes(model, to_rows(data), positions, SEARCH, seed=seed, **options)


@pytest.mark.parametrize(
    "name", ["clusters", *(pytest.param(name, marks=pytest.mark.full) for name in ("frequency", "narrow"))]
)
def test_the_best_mode_is_found_where_one_start_finds_another(name, rng):
    make, parameter, true = CASES[name]
    model, data = make(rng)
    start = flat_position(model.initial_position)
    place = list(model.initial_position).index(parameter)
    with jax.enable_x64(True):
        alone, _ = FullPosterior(model, to_rows(data), model.initial_position).find_mode(SEARCH, start)
    assert not abs(abs(alone.position[place]) - true) < 0.5, "the start alone would do"
    for seed in range(2):
        found = look(model, data, seed)
        assert abs(abs(found.start[place]) - true) < 0.2
        assert found.modes[0].position is found.start
        assert found.shares[0] > 0.999


def test_shares_are_those_of_the_mass(rng):
    """Laplace's approximation of a mode that is a piece of a hyperbola is within a third of the truth."""
    model, data = factors(rng)
    found = look(model, data)
    assert len(found.modes) == 2
    true = share_of_positive(data)
    assert 0.5 < true < 0.9
    assert found.start[0] > 0
    assert found.shares[0] == pytest.approx(true, rel=0.15)
    assert found.modes[1].is_users
    assert not found.symmetries, "the prior tells the two signs apart"


@pytest.mark.full
def test_equal_modes_leave_the_users_own_and_are_copies(rng):
    model, data = factors(rng, prior_mean=0.0)
    found = look(model, data)
    assert found.start[0] < 0, "where the user starts"
    assert found.num_copies == 2
    assert len(found.modes) == 1
    assert any("first" in words and "second" in words for words in found.symmetries)


@pytest.mark.full
def test_labels_of_a_mixture_are_copies(rng):
    y = np.concatenate([rng.normal(-4, 1, 500), rng.normal(0, 0.5, 500), rng.normal(4, 1, 1_000)])
    found = look(cm.models.gaussian_mixture(3), {"y": rng.permutation(y)})
    assert found.num_copies == 6
    assert len(found.symmetries) == 3
    assert found.shares[0] > 0.99
    np.testing.assert_allclose(np.sort(found.start[-3:]), [-4, 0, 4], atol=0.3)


@pytest.mark.full
def test_what_no_row_reads_is_left_alone(rng):
    """The density of effects and their scale has a spike without mass where all effects are alike."""

    def log_prior(position):
        scale = jnp.exp(position["log_scale"])
        effects = -0.5 * jnp.sum((position["effects"] / scale) ** 2) - 4 * position["log_scale"]
        return effects - 0.5 * (position["log_scale"] / 10.0) ** 2

    model = cm.Model(
        log_prior,
        lambda position, rows: -0.5 * (rows["y"] - position["effects"][rows["group"]]) ** 2,
        {"effects": np.zeros(4), "log_scale": np.zeros(())},
    )
    group = rng.integers(4, size=400)
    found = look(model, {"y": 0.1 * group + rng.normal(size=400), "group": group})
    assert found.start[-1] == 0.0
    assert np.ptp(found.start[:4]) > 0.1
    assert found.modes[0].search is None


def test_without_gradients_the_highest_place_is_taken_if_the_rows_ask_for_it(rng):
    data = {"y": 30.0 + rng.normal(size=400)}

    def stepped(position, rows):
        return -jnp.abs(rows["y"] - jnp.floor(position["centre"]))

    def model(start):
        return cm.Model(
            lambda position: -0.5 * (position["centre"] / 50.0) ** 2,
            stepped,
            {"centre": np.asarray(start)},
            differentiable=False,
        )

    found = look(model(-80.0), data)
    assert found.modes == ()
    assert abs(found.start[0] - 30.5) < 1.5
    assert look(model(30.2), data).start[0] == 30.2, "nothing is much better than the user's own"


def test_a_spike_of_the_prior_is_no_place_to_start(rng):
    """No gradients, no mode: what the prior alone prefers does not move the start."""
    model = cm.Model(
        lambda position: -200.0 * jnp.log(jnp.abs(position["other"]) + 1e-6),
        lambda position, rows: -((rows["y"] - position["centre"]) ** 2),
        {"centre": np.zeros(()), "other": np.ones(())},
        differentiable=False,
    )
    np.testing.assert_array_equal(look(model, {"y": 0.1 * rng.normal(size=300)}).start, [0.0, 1.0])


def test_only_maps_that_change_nothing_are_symmetries(rng):
    position = {"a": np.zeros(2), "b": np.zeros(2)}
    maps = proposed_maps(position, np.zeros(4, bool))
    trials = rng.normal(size=(6, 4))
    found = symmetries(
        maps, trials, lambda flat: -(flat[:, 0] ** 2) * flat[:, 2] ** 2 - flat[:, 1] ** 2 * flat[:, 3] ** 2
    )
    words = {mapped.words for mapped in found}
    assert "components 0 and 1 of a, b" in words
    assert "the sign of a[0]" in words
    assert "components 0 and 1 of a" not in words
    assert symmetries(maps, trials, lambda flat: flat @ np.arange(1.0, 5.0)) == []
    assert symmetries(maps, trials, lambda flat: np.full(len(flat), -np.inf)) == [], "nothing is known"
    exchange = [mapped for mapped in found if mapped.words == "components 0 and 1 of a, b"]
    np.testing.assert_array_equal(copies(np.arange(4.0), exchange), [[0, 1, 2, 3], [1, 0, 3, 2]])


def test_draws_represent_the_modes_that_they_visit(rng):
    def mode(at, evidence):
        return Mode(np.array([at]), evidence, np.eye(1), False, None)

    modes = Modes((mode(0.0, 0.0), mode(20.0, -1.0)), (), 1, False, np.zeros(1), 2, 10, 0)
    here, there = rng.normal(size=(100, 1)), 20.0 + rng.normal(size=(40, 1))
    np.testing.assert_array_equal(modes.is_missing(here), [False, True])
    np.testing.assert_array_equal(modes.is_missing(np.concatenate([here, there])), [False, False])
    np.testing.assert_allclose(modes.shares, np.array([1.0, np.exp(-1.0)]) / (1.0 + np.exp(-1.0)))


def test_a_climb_decomposes_one_matrix_at_a_time():
    """Two calls for a batch of matrices at the same time can wait for each other's threads for ever.

    One call is for the step, and one, which needs its outcome, for the decrement.
    """
    generator = np.random.default_rng(0)
    model = cm.models.linear_regression(3)
    position = jax.tree.map(np.asarray, starting_positions(model, jax.random.key(0), 1))
    position = jax.tree.map(lambda leaf: leaf[0], position)
    rows = to_rows({"x": generator.normal(size=(600, 3)), "y": generator.normal(size=600)})
    few = sample.Sample(model, rows, position, 0)
    flat, unravel = ravel_pytree(position)
    weights = np.tile(few.weights, (few.num_climbers, 1))
    starts = np.tile(np.asarray(flat), (few.num_climbers, 1))
    nothing = np.zeros(flat.size, bool)
    program = sample.climb_program().lower(few.model, unravel, few.rows, weights, starts, nothing).compile().as_text()
    assert program.count('custom_call_target="lapack_') == 2
