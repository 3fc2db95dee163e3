"""Models whose posterior is no Gaussian: densities against SciPy, exact symmetries, extremes, where Laplace fails."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import integrate, optimize, special, stats

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.models import (
    bradley_terry,
    bradley_terry_data,
    gaussian_location,
    gaussian_mixture,
    gaussian_mixture_data,
    hierarchical_logistic_regression,
    hierarchical_logistic_regression_data,
    unidentified_regression,
    unidentified_regression_data,
)
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.special import LARGEST_LOG_INVERSE_SCALE, inverse_scale
from coreset_mcmc.models.unidentified import log_density_of_a_factor
from coreset_mcmc.posterior.target import CoresetTarget

pytestmark = pytest.mark.full

NUM_COMPONENTS, NUM_FEATURES, NUM_GROUPS, NUM_PLAYERS = 3, 2, 5, 6
MODELS = {
    "mixture": gaussian_mixture(NUM_COMPONENTS),
    "unidentified": unidentified_regression(),
    "hierarchical": hierarchical_logistic_regression(NUM_FEATURES, NUM_GROUPS),
    "bradley_terry": bradley_terry(NUM_PLAYERS),
}
every_model = pytest.mark.parametrize("name", MODELS)
with_predictor = pytest.mark.parametrize("name", ["hierarchical", "bradley_terry"])


def rows_of(name: str, rng: np.random.Generator, num_rows: int = 40) -> dict[str, np.ndarray]:
    if name == "mixture":
        return gaussian_mixture_data(rng, num_rows)
    if name == "unidentified":
        return unidentified_regression_data(rng, num_rows)
    if name == "hierarchical":
        return hierarchical_logistic_regression_data(rng, num_rows, num_features=NUM_FEATURES, num_groups=NUM_GROUPS)
    return bradley_terry_data(rng, num_rows, num_players=NUM_PLAYERS)


def position_of(name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    sizes: dict[str, dict[str, Any]] = {
        "mixture": dict.fromkeys(("means", "log_scales", "logits"), NUM_COMPONENTS),
        "unidentified": {"factors": 2, "slope": ()},
        "hierarchical": {"beta": NUM_FEATURES, "effects": NUM_GROUPS, "mean": (), "log_scale": ()},
        "bradley_terry": {"ability": NUM_PLAYERS},
    }
    return {leaf: np.asarray(rng.normal(size=size)) for leaf, size in sizes[name].items()}


def scipy_log_likelihood(name: str, position: Any, batch: Any) -> np.ndarray:
    if name == "mixture":
        scales = np.exp(position["log_scales"])
        parts = stats.norm.logpdf(batch["y"][:, None], position["means"], scales)
        return special.logsumexp(parts, axis=1, b=special.softmax(position["logits"]))
    if name == "unidentified":
        design = np.column_stack([position["factors"].prod() * batch["x"][:, 0], batch["x"][:, 1]])
        return stats.norm.logpdf(batch["y"], design @ np.array([1.0, position["slope"]]))
    if name == "hierarchical":
        eta = batch["x"] @ position["beta"] + position["effects"][batch["group"]]
        return stats.bernoulli.logpmf(batch["y"].astype(int), special.expit(eta))
    strength = np.exp(position["ability"])
    return np.log(strength[batch["winner"]] / (strength[batch["winner"]] + strength[batch["loser"]]))


def scipy_log_prior(name: str, position: Any) -> float:
    of_leaf = {leaf: stats.norm.logpdf(value).sum() for leaf, value in position.items()}
    if name == "mixture":
        of_leaf["means"] = stats.norm.logpdf(position["means"], 0.0, 5.0).sum()
    if name == "hierarchical":
        scale = np.exp(position["log_scale"])
        of_leaf["effects"] = stats.norm.logpdf(position["effects"], position["mean"], scale).sum()
    return float(sum(of_leaf.values()))


def full_log_density(model: Model, data: Any) -> Any:
    """The full log-density of a flat position, and how to flatten one."""
    return lambda position: model.log_prior(position) + jnp.sum(model.log_likelihood(position, data))


@every_model
class TestAgainstScipy:
    """Up to terms free of the position: differences between two positions agree, row by row."""

    def test_log_likelihood(self, rng: np.random.Generator, name: str) -> None:
        batch, here, there = rows_of(name, rng), position_of(name, rng), position_of(name, rng)
        log_likelihood = jax.jit(MODELS[name].log_likelihood)
        ours = np.asarray(log_likelihood(here, batch)) - np.asarray(log_likelihood(there, batch))
        expected = scipy_log_likelihood(name, here, batch) - scipy_log_likelihood(name, there, batch)
        assert ours.shape == (40,)
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)

    def test_log_prior(self, rng: np.random.Generator, name: str) -> None:
        here, there = position_of(name, rng), position_of(name, rng)
        ours = MODELS[name].log_prior(here) - MODELS[name].log_prior(there)
        assert ours.shape == ()
        expected = scipy_log_prior(name, here) - scipy_log_prior(name, there)
        assert float(ours) == pytest.approx(expected, rel=1e-10, abs=1e-12)

    def test_gradient_by_finite_differences(self, rng: np.random.Generator, name: str) -> None:
        """A central difference with step h = 1e-5 is off by h^2 times the third derivative, and by rounding / h."""
        model, batch = MODELS[name], rows_of(name, rng)
        flat, unravel = ravel_pytree(position_of(name, rng))
        log_density = jax.jit(lambda at: full_log_density(model, batch)(unravel(at)))
        steps = 1e-5 * np.eye(flat.size)
        differences = [float(log_density(flat + step) - log_density(flat - step)) / 2e-5 for step in steps]
        np.testing.assert_allclose(jax.jit(jax.grad(log_density))(flat), differences, rtol=1e-5, atol=1e-6)

    def test_accepts_its_own_rows_and_starts_in_the_support(self, rng: np.random.Generator, name: str) -> None:
        model, batch = MODELS[name], rows_of(name, rng)
        assert model.check_data is not None
        model.check_data(batch)
        start = model.initial_position
        start = start(jax.random.key(0)) if callable(start) else start
        assert jax.tree.map(np.shape, start) == jax.tree.map(np.shape, position_of(name, rng))
        assert np.all(np.isfinite(model.log_likelihood(start, batch)))
        assert set(model.dims or {}) == {leaf for leaf, value in start.items() if np.ndim(value)}

    def test_data_repeats_with_its_seed(self, name: str) -> None:
        first, second, other = (rows_of(name, np.random.default_rng(seed)) for seed in (7, 7, 8))
        jax.tree.map(np.testing.assert_array_equal, first, second)
        assert any(np.any(first[column] != other[column]) for column in first)


class TestMixture:
    def test_takes_a_plain_array(self, rng: np.random.Generator) -> None:
        model, batch, position = MODELS["mixture"], rows_of("mixture", rng), position_of("mixture", rng)
        assert model.check_data is not None
        model.check_data(batch["y"])
        np.testing.assert_array_equal(model.log_likelihood(position, batch["y"]), model.log_likelihood(position, batch))

    def test_one_component_is_a_gaussian(self, rng: np.random.Generator) -> None:
        position = {"means": np.array([0.3]), "log_scales": np.array([-0.5]), "logits": np.array([9.0])}
        y = rng.normal(size=10)
        expected = stats.norm.logpdf(y, 0.3, np.exp(-0.5)) + 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(gaussian_mixture(1).log_likelihood(position, y), expected, rtol=1e-12)

    def test_chains_start_apart(self) -> None:
        start = MODELS["mixture"].initial_position
        assert callable(start)
        first, second = (start(jax.random.key(seed))["means"] for seed in (0, 1))
        assert np.unique(np.concatenate([first, second])).size == 2 * NUM_COMPONENTS


class TestSymmetries:
    def test_relabelling_two_components_changes_no_bit(self, rng: np.random.Generator) -> None:
        model, batch = gaussian_mixture(2), rows_of("mixture", rng)
        position = {leaf: rng.normal(size=2) for leaf in ("means", "log_scales", "logits")}
        swapped = {leaf: value[::-1] for leaf, value in position.items()}
        np.testing.assert_array_equal(model.log_likelihood(swapped, batch), model.log_likelihood(position, batch))
        assert float(model.log_prior(swapped)) == float(model.log_prior(position))

    def test_relabelling_more_components_up_to_the_order_of_sums(self, rng: np.random.Generator) -> None:
        model, batch, position = MODELS["mixture"], rows_of("mixture", rng), position_of("mixture", rng)
        turned = {leaf: np.roll(value, 1) for leaf, value in position.items()}
        density = full_log_density(model, batch)
        assert float(density(turned)) == pytest.approx(float(density(position)), rel=1e-13)
        broken = {**turned, "logits": position["logits"]}
        assert abs(float(density(broken) - density(position))) > 1e-3

    def test_flipping_both_signs_changes_no_bit(self, rng: np.random.Generator) -> None:
        model, batch, position = MODELS["unidentified"], rows_of("unidentified", rng), position_of("unidentified", rng)
        density = full_log_density(model, batch)
        for factors in (-position["factors"], position["factors"][::-1]):
            assert float(density({**position, "factors": factors})) == float(density(position))
        one_sign = {**position, "factors": position["factors"] * np.array([-1.0, 1.0])}
        assert abs(float(density(one_sign) - density(position))) > 1e-3

    def test_only_the_product_enters_the_likelihood(self, rng: np.random.Generator) -> None:
        model, batch, position = MODELS["unidentified"], rows_of("unidentified", rng), position_of("unidentified", rng)
        along = {**position, "factors": position["factors"] * np.array([3.0, 1.0 / 3.0])}
        np.testing.assert_allclose(
            model.log_likelihood(along, batch), model.log_likelihood(position, batch), rtol=1e-12
        )

    def test_a_common_shift_of_abilities_is_seen_by_the_prior_alone(self, rng: np.random.Generator) -> None:
        model, batch, position = (
            MODELS["bradley_terry"],
            rows_of("bradley_terry", rng),
            position_of("bradley_terry", rng),
        )
        shifted = {"ability": position["ability"] + 0.7}
        np.testing.assert_allclose(
            model.log_likelihood(shifted, batch), model.log_likelihood(position, batch), rtol=1e-12
        )
        change = -0.7 * position["ability"].sum() - 0.5 * NUM_PLAYERS * 0.7**2
        assert float(model.log_prior(shifted) - model.log_prior(position)) == pytest.approx(change, rel=1e-12)
        one_player = {"ability": position["ability"] + 0.7 * (np.arange(NUM_PLAYERS) == 0)}
        assert np.any(np.abs(model.log_likelihood(one_player, batch) - model.log_likelihood(position, batch)) > 1e-3)

    def test_a_win_mirrored_is_a_loss(self, rng: np.random.Generator) -> None:
        """Both outcomes of a game have probabilities that sum to one."""
        model, batch, position = (
            MODELS["bradley_terry"],
            rows_of("bradley_terry", rng),
            position_of("bradley_terry", rng),
        )
        mirrored = {"winner": batch["loser"], "loser": batch["winner"]}
        total = np.exp(model.log_likelihood(position, batch)) + np.exp(model.log_likelihood(position, mirrored))
        np.testing.assert_allclose(total, 1.0, rtol=1e-13)


EXTREMES = [-1e7, -1e4, -800.0, -301.0, -40.0, 0.0, 40.0, 301.0, 800.0, 1e4, 1e7]


class TestExtremes:
    @pytest.mark.parametrize("extreme", EXTREMES)
    @every_model
    def test_every_coordinate_may_be_extreme(self, rng: np.random.Generator, name: str, extreme: float) -> None:
        """One coordinate at a time, as a slice along a coordinate visits it: values and gradients stay finite."""
        model, batch = MODELS[name], rows_of(name, rng)
        flat, unravel = ravel_pytree(position_of(name, rng))
        evaluate = _value_and_gradient(name)
        for number in range(flat.size):
            value, gradient = evaluate(unravel(flat.at[number].set(extreme)), batch)
            assert np.isfinite(value)
            assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
        assert model is MODELS[name]

    def test_a_row_exactly_at_a_mean_of_vanishing_scale(self) -> None:
        """exp(800) overflows, and 0 * inf would be NaN; the height of the peak is -log_scale."""
        position = {"means": np.array([1.0, 0.0]), "log_scales": np.array([-800.0, 0.0]), "logits": np.zeros(2)}
        value = gaussian_mixture(2).log_likelihood(position, np.array([1.0]))
        np.testing.assert_allclose(value, [np.log(0.5) + 800.0], rtol=1e-14)

    def test_effects_exactly_at_their_mean(self) -> None:
        start = MODELS["hierarchical"].initial_position
        value = MODELS["hierarchical"].log_prior({**start, "log_scale": np.array(-800.0)})
        assert float(value) == pytest.approx(NUM_GROUPS * 800.0 - 0.5 * 800.0**2, rel=1e-14)

    def test_inverse_scale(self) -> None:
        scales = np.array([-LARGEST_LOG_INVERSE_SCALE - 1.0, -LARGEST_LOG_INVERSE_SCALE, -1.0, 0.0, 2.0, 800.0])
        expected = np.exp(np.array([300.0, 300.0, 1.0, 0.0, -2.0, -800.0]))
        np.testing.assert_allclose(inverse_scale(scales), expected, rtol=1e-14, atol=1e-307)

    def test_certain_outcomes(self) -> None:
        """A defeat of a player 1e4 stronger costs 1e4, a victory nothing."""
        ability = np.zeros(NUM_PLAYERS)
        ability[0] = 1e4
        games = {"winner": np.array([0, 1]), "loser": np.array([1, 0])}
        np.testing.assert_allclose(MODELS["bradley_terry"].log_likelihood({"ability": ability}, games), [0.0, -1e4])


_COMPILED: dict[str, Any] = {}


def _value_and_gradient(name: str) -> Any:
    if name not in _COMPILED:
        model = MODELS[name]
        _COMPILED[name] = jax.jit(jax.value_and_grad(lambda at, batch: full_log_density(model, batch)(at)))
    return _COMPILED[name]


class TestLinearPredictor:
    @with_predictor
    def test_split_is_the_whole(self, rng: np.random.Generator, name: str) -> None:
        model, batch, position = MODELS[name], rows_of(name, rng), position_of(name, rng)
        split = model.linear_predictor
        assert split is not None
        np.testing.assert_array_equal(
            split.log_likelihood(position, split.predictor(position, batch), batch),
            model.log_likelihood(position, batch),
        )

    @with_predictor
    def test_evaluation_along_a_line(self, rng: np.random.Generator, name: str) -> None:
        """What a slice kernel sees is the density itself, which holds only if the predictor is affine."""
        model, batch, position = MODELS[name], rows_of(name, rng), position_of(name, rng)
        direction = position_of(name, rng)
        target = CoresetTarget(jax.tree.map(jnp.asarray, batch), jnp.asarray(rng.uniform(0.0, 3.0, 40)), model)
        on_line = target.along(jax.tree.map(jnp.asarray, position), jax.tree.map(jnp.asarray, direction))
        for distance in (-2.0, 0.5, 7.0):
            moved = jax.tree.map(lambda at, step, t=distance: at + t * step, position, direction)
            assert float(on_line(jnp.asarray(distance))) == pytest.approx(float(target.log_density(moved)), rel=1e-12)

    @pytest.mark.parametrize("name", ["mixture", "unidentified"])
    def test_others_have_none(self, name: str) -> None:
        assert MODELS[name].linear_predictor is None

    def test_whole_numbers_may_come_as_floats(self, rng: np.random.Generator) -> None:
        batch, position = rows_of("hierarchical", rng), position_of("hierarchical", rng)
        as_float = {**batch, "group": batch["group"].astype(float)}
        model = MODELS["hierarchical"]
        assert model.check_data is not None
        model.check_data(as_float)
        np.testing.assert_array_equal(model.log_likelihood(position, as_float), model.log_likelihood(position, batch))


class TestChangeBound:
    def pair(self, rng: np.random.Generator, name: str, size: float) -> tuple[Any, Any]:
        position = position_of(name, rng)
        return position, jax.tree.map(lambda leaf: leaf + size * rng.normal(size=leaf.shape), position)

    @with_predictor
    @pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
    def test_holds_for_every_row(self, rng: np.random.Generator, name: str, size: float) -> None:
        model, batch = MODELS[name], rows_of(name, rng)
        assert model.change_bound is not None
        largest = jnp.max(model.change_bound.row_statistic(batch))
        for _ in range(20):
            here, there = self.pair(rng, name, size)
            change = np.abs(model.log_likelihood(there, batch) - model.log_likelihood(here, batch))
            assert change.max() <= float(model.change_bound.bound(largest, here, there)) * (1 + 1e-12)

    def test_is_reached(self) -> None:
        """Half the bound would be wrong: a certain defeat changes by the whole difference."""
        model = MODELS["bradley_terry"]
        here, there = {"ability": np.zeros(NUM_PLAYERS)}, {"ability": np.r_[1.0, np.zeros(NUM_PLAYERS - 1)] * 1e3}
        game = {"winner": np.array([1]), "loser": np.array([0])}
        assert model.change_bound is not None
        bound = float(model.change_bound.bound(jnp.ones(()), here, there))
        change = float((model.log_likelihood(here, game) - model.log_likelihood(there, game))[0])
        assert bound * (1 - 1e-3) < change <= bound


X, Y, GROUP = np.zeros((4, 2)), np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 4, 2])
GAMES = {"winner": np.array([0, 1, 2]), "loser": np.array([1, 2, 0])}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("mixture", {"x": Y}, r"gaussian_mixture data: got keys \['x'\]; expected an array of shape \(N,\)"),
        ("mixture", X, r"gaussian_mixture data: got shape \(4, 2\)"),
        ("mixture", {"y": X}, r"gaussian_mixture data: got shape \(4, 2\)"),
        ("unidentified", {"x": X[:, :1], "y": Y}, r"features x: got shape \(4, 1\); expected shape \(N, 2\)"),
        ("hierarchical", {"x": X, "y": Y}, r"column group: got keys \['x', 'y'\]; .*\"group\": \(N,\)"),
        ("hierarchical", {"x": X, "y": Y + 1, "group": GROUP}, r"response y: got 2 rows outside, first y\[1\]"),
        (
            "hierarchical",
            {"x": X, "y": Y, "group": GROUP + 1},
            r"group: got 1 rows outside, first group\[2\] = .*0 to 4",
        ),
        ("hierarchical", {"x": X, "y": Y, "group": GROUP - 1}, r"group: got 1 rows outside, first group\[0\] = .*-1"),
        ("hierarchical", {"x": X, "y": Y, "group": GROUP + 0.5}, r"group: got 4 rows outside"),
        ("hierarchical", {"x": X, "y": Y, "group": X}, r"column group: got shape \(4, 2\); expected shape \(N,\)"),
        ("bradley_terry", Y, "column winner: got ndarray"),
        ("bradley_terry", {"winner": GAMES["winner"]}, r"column loser: got keys \['winner'\]"),
        (
            "bradley_terry",
            {**GAMES, "loser": np.array([1, 6, 0])},
            r"loser: got 1 rows outside, first loser\[1\] = .*6",
        ),
        ("bradley_terry", {**GAMES, "loser": np.array([1, 1, 0])}, "player 1 against itself in row 1"),
    ],
)
def test_unsuitable_data_is_named(name: str, data: Any, message: str) -> None:
    check = MODELS[name].check_data
    assert check is not None
    with pytest.raises(InputError, match=message):
        check(data)


def test_factories_are_cached_and_name_themselves() -> None:
    for factory, arguments in (
        (gaussian_mixture, (2,)),
        (unidentified_regression, ()),
        (hierarchical_logistic_regression, (2, 3)),
        (bradley_terry, (4,)),
    ):
        assert factory(*arguments) is factory(*arguments)
        assert factory(*arguments).name == factory.__name__


@pytest.mark.parametrize(
    ("factory", "arguments", "message"),
    [
        (gaussian_mixture, (0,), "num_components: got 0"),
        (hierarchical_logistic_regression, (0,), "num_features: got 0"),
        (hierarchical_logistic_regression, (2, 2.5), "num_groups: got 2.5"),
        (bradley_terry, (1,), "num_players: got 1; expected a whole number of at least 2"),
    ],
)
def test_bad_counts_are_refused(factory: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        factory(*arguments)


def laplace(model: Model, data: Any, start: Any) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """The flat log-density, a mode of it and minus its Hessian there, found by SciPy alone; and how to unflatten."""
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, start))
    density = full_log_density(model, data)
    log_density = jax.jit(lambda at: density(unravel(at)))
    downhill = jax.jit(jax.value_and_grad(lambda at: -density(unravel(at))))
    hessian = jax.jit(jax.hessian(lambda at: -density(unravel(at))))
    found = optimize.minimize(
        lambda at: jax.tree.map(np.asarray, downhill(at)), flat, jac=True, hess=hessian, method="trust-exact"
    )
    return log_density, found.x, np.asarray(hessian(found.x)), unravel


def drop_at_one_deviation(log_density: Any, mode: np.ndarray, precision: np.ndarray) -> float:
    """Fall of the log-density one standard deviation from the mode along the widest direction; 1/2 for a Gaussian."""
    values, vectors = np.linalg.eigh(precision)
    return float(log_density(mode) - log_density(mode + vectors[:, 0] / np.sqrt(values[0])))


class TestLaplaceFails:
    def test_the_measure_itself(self, rng: np.random.Generator) -> None:
        """For a Gaussian posterior the fall is one half, however narrow it is."""
        data = rng.normal(size=(2_000, 2))
        log_density, mode, precision, _ = laplace(gaussian_location(2), data, {"theta": np.ones(2)})
        assert drop_at_one_deviation(log_density, mode, precision) == pytest.approx(0.5, rel=1e-6)

    def test_tangent_leaves_the_hyperbola(self, rng: np.random.Generator) -> None:
        """Off the curve by t^2/2 for a step t = sqrt(1/2) along the tangent: a change of the product by 1/4.

        With N rows that costs about N/32, here 60, where the Gaussian expects 1/2.
        """
        data = unidentified_regression_data(rng, 2_000)
        start = {"factors": np.array([0.8, 0.6]), "slope": np.array(-1.0)}
        log_density, mode, precision, _ = laplace(unidentified_regression(), data, start)
        assert np.linalg.eigvalsh(precision)[0] > 0
        assert drop_at_one_deviation(log_density, mode, precision) > 30.0

    def test_half_the_mass_is_on_the_other_branch(self, rng: np.random.Generator) -> None:
        """Exactly half by symmetry; the Gaussian at a mode gives it Phi(-mode / deviation), about 0.16."""
        data = unidentified_regression_data(rng, 2_000)
        start = {"factors": np.array([0.8, 0.6]), "slope": np.array(-1.0)}
        _, mode, precision, _ = laplace(unidentified_regression(), data, start)
        grid = np.linspace(-8.0, 8.0, 20_001)
        density = np.exp(log_density_of_a_factor(grid, data) - log_density_of_a_factor(grid, data).max())
        share = density[grid < 0].sum() / density.sum()
        assert share == pytest.approx(0.5, abs=1e-6)
        deviation = np.sqrt(np.linalg.inv(precision)[0, 0])
        assert stats.norm.cdf(-mode[0] / deviation) < 0.2

    def test_the_other_labelling_is_out_of_reach(self, rng: np.random.Generator) -> None:
        """A mode of the same height, tens of standard deviations away: half the mass that the Gaussian cannot see."""
        data = gaussian_mixture_data(rng, 2_000)
        start = {"means": np.array([-0.6, 0.9]), "log_scales": np.zeros(2), "logits": np.zeros(2)}
        log_density, mode, precision, unravel = laplace(gaussian_mixture(2), data, start)
        mirrored = ravel_pytree(jax.tree.map(lambda leaf: leaf[::-1], unravel(mode)))[0]
        assert np.linalg.eigvalsh(precision)[0] > 0
        assert float(log_density(mirrored)) == float(log_density(mode))
        gap = np.asarray(mirrored) - mode
        assert np.sqrt(gap @ precision @ gap) > 10.0

    def test_the_highest_point_of_the_hierarchy_is_a_useless_spike(self, rng: np.random.Generator) -> None:
        """All effects equal and log_scale = -J: higher than the truth by hundreds, with no mass to speak of."""
        data = hierarchical_logistic_regression_data(rng, 2_000)
        model = hierarchical_logistic_regression(3, 50)
        density = jax.jit(full_log_density(model, data))
        body = {
            "beta": np.zeros(3),
            "effects": -2.0 + 0.3 * rng.normal(size=50),
            "mean": -2.0,
            "log_scale": np.log(0.3),
        }
        spike = {**body, "effects": np.full(50, -2.0), "log_scale": -50.0}
        assert float(density(spike) - density(body)) > 200.0

    def test_the_mean_ability_has_the_curvature_of_its_prior(self, rng: np.random.Generator) -> None:
        """What the data leaves open: along (1, ..., 1) the Hessian is minus the number of players, at any position."""
        model, batch = MODELS["bradley_terry"], rows_of("bradley_terry", rng)
        density = full_log_density(model, batch)
        hessian = jax.jit(jax.hessian(lambda ability: density({"ability": ability})))(
            position_of("bradley_terry", rng)["ability"]
        )
        np.testing.assert_allclose(hessian @ np.ones(NUM_PLAYERS), -np.ones(NUM_PLAYERS), rtol=1e-10)


def test_marginal_of_a_factor_by_integration(rng: np.random.Generator) -> None:
    """b and c integrated out on a grid: differences of the logarithm agree."""
    data = unidentified_regression_data(rng, 8)
    squares, cross = data["x"].T @ data["x"], data["x"].T @ data["y"]

    def by_hand(a: float) -> float:
        def joint(c: float, b: float) -> float:
            theta = np.array([a * b, c])
            return float(np.exp(theta @ cross - 0.5 * theta @ squares @ theta - 0.5 * (a * a + b * b + c * c)))

        return float(np.log(integrate.dblquad(joint, -9.0, 9.0, -9.0, 9.0, epsabs=1e-10, epsrel=1e-10)[0]))

    ours = log_density_of_a_factor(np.array([-1.5, 0.2]), data)
    assert ours[0] - ours[1] == pytest.approx(by_hand(-1.5) - by_hand(0.2), rel=1e-8)


def test_fit_works_end_to_end(rng: np.random.Generator) -> None:
    """Groups as an integer column, a dictionary of four variables and named dimensions, from data to draws."""
    data = hierarchical_logistic_regression_data(rng, 300, num_features=NUM_FEATURES, num_groups=NUM_GROUPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            MODELS["hierarchical"],
            data,
            coreset_size=60,
            draws=50,
            tune=10,
            chains=2,
            random_seed=1,
            progressbar=False,
            method=cm.CoresetMCMC(num_chains=2, num_iterations=20),
        )
    posterior = fitted.posterior
    assert dict(posterior.sizes) == {"chain": 2, "draw": 50, "coefficient": NUM_FEATURES, "group": NUM_GROUPS}
    assert all(np.all(np.isfinite(posterior[name])) for name in ("beta", "effects", "mean", "log_scale"))
    assert np.isfinite(fitted.kl_estimate)
