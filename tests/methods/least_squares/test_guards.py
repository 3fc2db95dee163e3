"""Supports that depend on the parameters: the rows that bound them come in, and stay."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.least_squares.equations import centred_over
from coreset_mcmc.methods.least_squares.guards import LEAST_WEIGHT, guarded, kept_above_zero
from coreset_mcmc.posterior.problem import make_problem, starting_positions

SIZE, NUM_ROWS, DRAWS = 1_000, 40, 500


def uniform_prior(position):
    return jnp.where(position["theta"] > 0, -0.01 * position["theta"], -jnp.inf)


def uniform_likelihood(position, batch):
    return jnp.where(batch["y"] < position["theta"], -jnp.log(position["theta"]), -jnp.inf)


UNIFORM = cm.Model(uniform_prior, uniform_likelihood, {"theta": 5.0}, name="uniform")
"""y ~ Uniform(0, theta): theta / max(y) is a Pareto variable with shape N, nearly."""

HOST = cm.Model.from_callable(
    lambda position: -0.01 * float(position["theta"]) if position["theta"] > 0 else -np.inf,
    lambda position, batch: np.where(batch["y"] < position["theta"], -np.log(position["theta"]), -np.inf),
    {"theta": np.array(5.0)},
)


@pytest.fixture(scope="module")
def data():
    return {"y": np.random.default_rng(7).uniform(0.0, 2.0, SIZE)}


def test_weights_of_guards_never_reach_zero():
    weights = kept_above_zero(np.array([0.0, 0.0, 3.0]), np.array([True, False, True]))
    np.testing.assert_array_equal(weights, [LEAST_WEIGHT, 0.0, 3.0])


def test_a_draw_that_a_row_forbids_does_not_spoil_the_others():
    side = np.array([[1.0], [3.0], [-np.inf]])
    np.testing.assert_array_equal(centred_over(np.array([True, True, False]), side), [[-1.0], [1.0], [np.nan]])


@double_precision
def test_the_row_that_forbids_takes_the_place_of_the_lightest(data):
    order = np.argsort(data["y"])
    chosen = SelectedRows(order[:4], np.array([4.0, 0.5, 3.0, 2.0]))
    starts = starting_positions(UNIFORM, jax.random.key(0), 2)
    problem = make_problem(UNIFORM, to_rows(data), chosen, starts)
    state = cm.LeastSquares(num_draws=4, num_chains=2, hot_start=False).init(jax.random.key(0), problem)
    draws = {"theta": np.array([0.3, 0.5, 2.5, 2.6])}
    made = guarded(state, problem, draws, np.array([False, False, True, True]))
    assert made is not None
    largest = int(order[-1])
    np.testing.assert_array_equal(made.state.indices, [order[0], largest, order[2], order[3]])
    np.testing.assert_array_equal(made.state.rows["y"], data["y"][made.state.indices])
    np.testing.assert_array_equal(made.state.is_guard, [False, True, False, False])
    np.testing.assert_array_equal(made.state.best_positions["theta"], [2.5, 2.6])
    assert guarded(made.state, problem, draws, np.array([False, False, True, True])) is None, "it is there already"


def check_uniform(fitted, data):
    """N (theta - max) / max is an exponential variable but for 1/N; its mean has a standard error of one over ESS."""
    assert int(data["y"].argmax()) in fitted.coreset.indices[fitted.coreset.weights > 0]
    largest = data["y"].max()
    gap = SIZE * (fitted.posterior["theta"].to_numpy() - largest) / largest
    ess = float(cm.metrics.bulk_ess(gap[..., None])[0])
    assert ess > 100
    assert gap.min() > 0
    assert gap.mean() == pytest.approx(1.0, abs=4.5 / np.sqrt(ess))
    assert gap.std() == pytest.approx(1.0, abs=9.0 / np.sqrt(ess))
    assert fitted.kl_estimate < 0.05


@pytest.mark.full
@pytest.mark.parametrize("model", [UNIFORM, HOST], ids=["jax", "host"])
@pytest.mark.filterwarnings("ignore:The smallest bulk ESS", "ignore:The largest R-hat")
def test_uniform_with_an_unknown_end(model, data):
    fitted = cm.fit(model, data, coreset_size=NUM_ROWS, draws=DRAWS, tune=200, random_seed=1, progressbar=False)
    check_uniform(fitted, data)
    assert int(fitted.tree["sample_stats"]["diverging"].sum()) == 0, "slices stop at the edge"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The smallest bulk ESS", "ignore:The largest R-hat")
def test_uniform_rows_of_the_user_leave_room_for_the_one_that_bounds(data):
    selection = cm.selection.Uniform()
    fitted = cm.fit(
        UNIFORM, data, coreset_size=NUM_ROWS, selection=selection, draws=DRAWS, tune=200, random_seed=2,
        progressbar=False,
    )  # fmt: skip
    check_uniform(fitted, data)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
@pytest.mark.filterwarnings("ignore:The smallest bulk ESS", "ignore:The largest R-hat")
def test_shifted_exponential(number):
    """Given the rate, N rate (min - shift) is exponential but for what priors of scale ten and a hundred do."""
    rng = np.random.default_rng(number)
    data = {"y": 1.0 + rng.exponential(0.5, SIZE)}

    def log_likelihood(position, batch):
        excess = batch["y"] - position["shift"]
        value = position["log_rate"] - jnp.exp(position["log_rate"]) * excess
        return jnp.where(excess > 0, value, -jnp.inf)

    model = cm.Model(
        lambda position: -0.5 * (position["shift"] / 10) ** 2 - 0.5 * (position["log_rate"] / 10) ** 2,
        log_likelihood,
        {"shift": 0.0, "log_rate": 0.0},
    )
    fitted = cm.fit(model, data, coreset_size=NUM_ROWS, draws=1_000, random_seed=number, progressbar=False)
    rate = np.exp(fitted.posterior["log_rate"].to_numpy())
    gap = SIZE * rate * (data["y"].min() - fitted.posterior["shift"].to_numpy())
    ess = float(cm.metrics.bulk_ess(gap[..., None])[0])
    assert int(data["y"].argmin()) in fitted.coreset.indices[fitted.coreset.weights > 0]
    assert gap.min() > 0
    assert gap.mean() == pytest.approx(1.0, abs=4.5 / np.sqrt(ess))
    assert fitted.kl_estimate < 0.05
