"""Rows that depend on each other are refused in every model; whatever else a model does with its rows is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc import models
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.methods.registry import MODELS
from coreset_mcmc.models.independence import TOLERANCE, random_positions
from coreset_mcmc.models.rows import NUM_ROWS, num_rows_of, unlike_rows
from coreset_mcmc.posterior.problem import check_model, starting_positions

SIZE = 50
RNG = np.random.default_rng(0)
DATA = {"x": RNG.normal(size=SIZE), "y": RNG.normal(1.0, 1.0, size=SIZE)}


def log_prior(position: Any) -> jax.Array:
    return -0.5 * (position["intercept"] ** 2 + position["slope"] ** 2)


def log_likelihood(position: Any, batch: Any) -> jax.Array:
    return -0.5 * (batch["y"] - position["intercept"] - position["slope"] * batch["x"]) ** 2


def changed(**columns: Callable[[Any], Any]) -> Callable[[Any, Any], jax.Array]:
    """The log-likelihood with columns changed by functions of all rows that it is given."""

    def function(position: Any, batch: Any) -> jax.Array:
        return log_likelihood(position, {**batch, **{name: change(batch[name]) for name, change in columns.items()}})

    return function


def check(model: cm.Model, data: Any = DATA) -> None:
    """As fitting does."""
    check_model(model, to_rows(data), starting_positions(model, jax.random.key(0), 2))


def plain(function: Callable[[Any, Any], Any], **options: Any) -> cm.Model:
    return cm.Model(log_prior, function, **{"initial_position": {"intercept": 0.0, "slope": 0.0}, **options})


DEPENDENT = {
    "centred response": (changed(y=lambda y: y - y.mean()), "the number or the values of the other rows"),
    "centred predictor": (changed(x=lambda x: x - x.mean()), "the number or the values of the other rows"),
    "scaled": (changed(x=lambda x: x / x.std()), "the number or the values of the other rows"),
    "cumulative sum": (changed(x=jnp.cumsum), "the order of the rows"),
    "lagged": (changed(x=lambda x: jnp.roll(x, 1)), "the order of the rows"),
    "row number": (changed(x=lambda x: jnp.arange(x.shape[0]) * x), "the order of the rows"),
    "mean over rows": (
        lambda position, batch: log_likelihood(position, batch) / batch["y"].shape[0],
        "the number or the values of the other rows",
    ),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_rows_of_a_plain_model_are_refused(name: str) -> None:
    """At the start the slope is zero, and what happens to x does not show there."""
    function, what = DEPENDENT[name]
    with pytest.raises(cm.InputError, match=rf"^log_likelihood\(position, batch\): got .* changes with {what};"):
        check(plain(function))


def test_fit_refuses_before_any_work() -> None:
    with pytest.raises(cm.InputError, match=r"log_likelihood.*independent given the parameters.*before the model"):
        cm.fit(plain(DEPENDENT["centred response"][0]), DATA, progressbar=False)


def test_rare_events_are_among_the_rows() -> None:
    """Classes weighted by their frequencies in the batch: with no event the weights are infinite, and nothing shows."""
    data = {"x": DATA["x"], "y": (np.arange(SIZE) == 33).astype(float)}

    def weighted(position: Any, batch: Any) -> jax.Array:
        weight = jnp.where(batch["y"] > 0, 1 / batch["y"].mean(), 1.0)
        return weight * log_likelihood(position, batch)

    with pytest.raises(cm.InputError, match="changes with"):
        check(plain(weighted), data)
    rows = unlike_rows({**data, "empty": np.zeros((SIZE, 0))})
    assert num_rows_of(rows) == NUM_ROWS
    assert rows["y"].max() == 1
    assert rows["x"].min() == DATA["x"].min()
    assert rows["x"].max() == DATA["x"].max()


def ready_made(name: str) -> tuple[cm.Model, Any]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(SIZE, 3))
    made = {
        "bradley-terry": lambda: (models.bradley_terry(5), models.bradley_terry_data(rng, SIZE, num_players=5)),
        "gaussian-location": lambda: (models.gaussian_location(3), x),
        "gaussian-mixture": lambda: (models.gaussian_mixture(), models.gaussian_mixture_data(rng, SIZE)),
        "hierarchical-logistic-regression": lambda: (
            models.hierarchical_logistic_regression(3, 4),
            models.hierarchical_logistic_regression_data(rng, SIZE, num_groups=4),
        ),
        "linear-regression": lambda: (models.linear_regression(3), {"x": x, "y": 100 * x[:, 0]}),
        "logistic-regression": lambda: (models.logistic_regression(3), {"x": x, "y": x[:, 0] > 0}),
        "poisson-regression": lambda: (models.poisson_regression(3), {"x": x, "y": rng.poisson(100, SIZE)}),
        "sparse-regression": lambda: (models.sparse_regression(3), {"x": x, "y": 30 * x[:, 0]}),
        "unidentified-regression": lambda: (
            models.unidentified_regression(),
            models.unidentified_regression_data(rng, SIZE),
        ),
    }
    return made[name]()


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_of_ours_passes(name: str) -> None:
    check(*ready_made(name))


def in_single_precision(position: Any, batch: Any) -> jax.Array:
    """A thousand terms for each row, added up in single precision and in an order that the batch decides."""
    terms = (log_likelihood(position, batch)[:, None] * jnp.linspace(0.5, 1.5, 1_000)).astype(jnp.float32)
    backwards = terms[:, ::-1] if batch["y"].shape[0] % 2 else terms
    return jnp.cumsum(backwards, axis=1)[:, -1]


def test_rounding_in_single_precision_passes() -> None:
    """Values that differ by more than double precision would let them, and by less than the tolerance."""
    position = {"intercept": 0.1, "slope": 0.2}
    even = in_single_precision(position, jax.tree.map(lambda leaf: leaf[:8], DATA))
    odd = in_single_precision(position, jax.tree.map(lambda leaf: leaf[:5], DATA))
    relative = np.max(np.abs(np.asarray(even[:5] / odd, float) - 1))
    assert 1e-9 < relative < TOLERANCE
    check(plain(in_single_precision))


def test_positions_outside_the_support_do_no_harm() -> None:
    """A simplex, which random factors leave: NaN there, and no reason to refuse."""

    def function(position: Any, batch: Any) -> jax.Array:
        is_inside = jnp.abs(jnp.sum(position) - 1) < 1e-9
        return jnp.where(is_inside, jnp.log(position[0] + position[1] * batch**2), jnp.nan)

    check(cm.Model(lambda position: jnp.zeros(()), function, np.array([0.5, 0.5])), DATA["x"])


def test_random_positions_keep_signs_and_whole_numbers() -> None:
    start = {"variance": np.full(20, 0.01), "slope": np.zeros(20), "gamma": np.array([0, 1]), "flag": np.array(True)}
    moved = random_positions(start, 50)
    assert np.all(moved["variance"] > 0)
    assert len(np.unique(moved["variance"])) == len(np.unique(moved["slope"])) == 1_000
    np.testing.assert_array_equal(moved["gamma"], np.tile([0, 1], (50, 1)))
    assert moved["gamma"].dtype == start["gamma"].dtype
    assert moved["flag"].all()


def test_the_test_draws_no_random_number_of_the_user() -> None:
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.get_state()[1].copy()  # noqa: NPY002
    check(plain(log_likelihood))
    np.testing.assert_array_equal(np.random.get_state()[1], expected)  # noqa: NPY002


def scaled(scale: float, position: Any, batch: Any) -> jax.Array:
    return scale * log_likelihood(position, batch)


class Scaled:
    """A function with a state, which has no hash."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, position: Any, batch: Any) -> jax.Array:
        return scaled(2.0, position, batch)


@pytest.mark.full
@pytest.mark.parametrize(
    "function",
    [
        Scaled(),
        partial(jax.jit(scaled), 2.0),
        pytest.param(partial(scaled, 2.0), marks=pytest.mark.slow),
        pytest.param(jax.jit(partial(scaled, 2.0)), marks=pytest.mark.slow),
    ],
    ids=["object", "partial of jitted", "partial", "jitted"],
)
def test_functions_of_every_kind_make_a_model(function: Any) -> None:
    settings = cm.Uniform(cm.kernels.RandomWalk())
    options = {"coreset_size": 20, "draws": 10, "tune": 2, "chains": 2, "random_seed": 0, "progressbar": False}
    fit = cm.fit(
        cm.Model(jax.jit(log_prior), function, {"intercept": 0.0, "slope": 0.0}), DATA, method=settings, **options
    )
    lp = fit.tree["sample_stats"]["lp"].to_numpy()[0, -1]
    position = {name: float(fit.posterior[name][0, -1]) for name in ("intercept", "slope")}
    rows = {name: values[fit.coreset.indices] for name, values in DATA.items()}
    expected = log_prior(position) + fit.coreset.weights @ scaled(2.0, position, rows)
    np.testing.assert_allclose(lp, expected, rtol=1e-9)
