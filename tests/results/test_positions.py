"""Positions come back as the model's own pytree, from memory and from a file."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.trees import leaf_names
from coreset_mcmc.results.skeleton import names_from, skeleton_of

pytestmark = pytest.mark.full

Y = np.random.default_rng(0).normal(1.0, 2.0, size=300)
START = {"mean": np.zeros(()), "scales": (np.zeros(()), np.zeros(()))}
"""Two scales that add up, so that there is a container in a container."""


def log_scale(position):
    return position["scales"][0] + position["scales"][1]


MODEL = cm.Model(
    lambda position: -0.5 * position["mean"] ** 2 - 0.5 * sum(part**2 for part in position["scales"]),
    lambda position, rows: (
        -0.5 * ((rows["y"] - position["mean"]) * jnp.exp(-log_scale(position))) ** 2 - log_scale(position)
    ),
    predictive=lambda key, position, rows: {"y": position["mean"] + jax.random.normal(key, rows["y"].shape)},
)
"""It has no start of its own."""


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(
            MODEL, {"y": Y}, initvals=START, coreset_size=60, draws=100, tune=50, chains=2, random_seed=0,
            progressbar=False,
        )  # fmt: skip


@pytest.fixture(scope="module", params=["from memory", "from a file"])
def either(request, fitted, tmp_path_factory):
    if request.param == "from memory":
        return fitted
    path = fitted.save(tmp_path_factory.mktemp("fits") / "fit.nc")
    return cm.load(path, model=MODEL, data={"y": Y})


def test_positions_are_the_pytree_of_the_model(either, fitted):
    positions = either.positions()
    assert jax.tree.structure(positions) == jax.tree.structure(START)
    np.testing.assert_array_equal(positions["mean"], fitted.posterior["mean"])
    np.testing.assert_array_equal(positions["scales"][1], fitted.posterior["scales.1"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_needs_positions_works(either):
    assert either.predict(draws=20)["posterior_predictive"]["y"].shape == (300, 5)
    assert np.isfinite(either.loo().elpd)
    exact = either.exact(draws=20, tune=5, chains=2, progressbar=False)
    assert jax.tree.structure(exact.positions()) == jax.tree.structure(START)


class Pair(NamedTuple):
    first: float
    second: float


@pytest.mark.parametrize("tree", [0.0, {"a": [0.0, (1.0, {"b": 2.0})], "c": ()}, [0.0], (0.0,)])
def test_structures_survive_a_file(tree):
    names = leaf_names(tree, "theta")
    assert names_from(skeleton_of(names)) == names


@pytest.mark.parametrize("tree", [Pair(0.0, 1.0), {"a": Pair(0.0, 1.0)}, {1: 0.0}])
def test_structures_that_a_file_cannot_hold(tree):
    assert skeleton_of(leaf_names(tree, "theta")) is None


def test_a_start_brings_back_what_a_file_cannot_hold(tmp_path):
    def fit(model, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return cm.fit(
                model, Y, method=cm.Uniform(), kernel=cm.kernels.HitAndRunSlice(), coreset_size=50, draws=10, tune=0,
                random_seed=0, progressbar=False, **options,
            )  # fmt: skip

    functions = (
        lambda position: -0.5 * position.first**2 - 0.5 * position.second**2,
        lambda position, rows: -0.5 * (rows - position.first - position.second) ** 2,
    )
    made = fit(cm.Model(*functions), initvals=Pair(0.0, 0.0))
    assert isinstance(made.positions(), Pair)
    path = made.save(tmp_path / "fit.nc")
    again = cm.load(path, model=cm.Model(*functions, initial_position=Pair(0.0, 0.0)), data=Y)
    np.testing.assert_array_equal(again.positions().second, made.positions().second)
    with pytest.raises(InputError, match="a model with an initial_position"):
        cm.load(path, model=cm.Model(*functions), data=Y).positions()


def test_corrected_draws_keep_every_digit(single_precision):
    """The user's scale is computed in double precision, whatever the session does."""
    model = cm.Model(
        lambda position: -0.5 * position["z"] ** 2,
        lambda position, rows: -0.5 * (rows - position["z"]) ** 2,
        {"z": np.zeros(())},
        constrain=lambda position: {"shifted": position["z"] + 1.0},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = cm.fit(
            model, Y, method=cm.Uniform(), kernel=cm.kernels.HitAndRunSlice(), coreset_size=200, draws=30, tune=0,
            random_seed=0, progressbar=False,
        ).reweight()  # fmt: skip
    np.testing.assert_array_equal(made.posterior["shifted"], made.positions()["z"] + 1.0)
