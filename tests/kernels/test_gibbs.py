"""Gibbs for the spike-and-slab regression, against enumeration of its posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr

from coreset_mcmc import CoresetMCMC, DoublingEpochs
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows, Uniform
from coreset_mcmc.diagnostics.metrics import jensen_shannon, jensen_shannon_floor
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.kernels.base import KernelInfo, init_chains, restart_chains, step_chains
from coreset_mcmc.kernels.gibbs import (
    GibbsState,
    SpikeAndSlabGibbs,
    WeightedSums,
    draw_beta,
    draw_variance,
    inclusion_log_odds,
    weighted_sums,
)
from coreset_mcmc.methods.sampling import FrozenSampling, SamplingProblem
from coreset_mcmc.models import (
    least_squares_start,
    linear_regression,
    logistic_regression,
    sparse_regression,
    sparse_regression_data,
)
from coreset_mcmc.models.model import SpikeAndSlab
from coreset_mcmc.models.sparse import coefficient_scales
from coreset_mcmc.posterior.problem import Problem, make_problem, starting_positions
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.kernel_checks import (
    FALSE_ALARM,
    NUM_CHAINS,
    NUM_REFERENCE,
    QUICK_COMPILATION,
    advance,
    assert_plausible,
    compare_draws,
    is_rejected,
)
from tests.helpers.sparse_exact import ExactSparse, small_posterior

POSTERIOR = small_posterior()


@pytree
@dataclass(frozen=True)
class AsPublished(SpikeAndSlabGibbs):
    """gamma_i weighed by the density of beta given the data, as in the paper's experiments: the evidence drops out."""

    def step(self, key: Key, state: GibbsState, target: CoresetTarget) -> tuple[GibbsState, KernelInfo]:
        moved, info = super().step(key, state, target)
        prior = target.model.structure
        beta, old_variance = moved.position["beta"], state.position["variance"]

        def log_weight(gamma: jax.Array) -> jax.Array:
            precision = state.sums.gram / old_variance + jnp.diag(coefficient_scales(gamma, prior) ** -2.0)
            pull = (state.sums.gram @ state.sums.centre + state.sums.cross) / old_variance
            gap = beta - jnp.linalg.solve(precision, pull)
            odds = prior.inclusion_probability / (1.0 - prior.inclusion_probability)
            return jnp.sum(gamma) * jnp.log(odds) + 0.5 * (jnp.linalg.slogdet(precision)[1] - gap @ precision @ gap)

        gamma = state.position["gamma"]
        for number, one_key in enumerate(jax.random.split(jax.random.fold_in(key, 1), gamma.size)):
            log_odds = log_weight(gamma.at[number].set(1)) - log_weight(gamma.at[number].set(0))
            is_one = jax.random.bernoulli(one_key, jax.nn.sigmoid(log_odds))
            gamma = gamma.at[number].set(is_one.astype(gamma.dtype))
        position = {**moved.position, "gamma": gamma}
        return moved._replace(position=position, log_density=target.log_density(position)), info


def start_and_reference(rng: np.random.Generator, exact: ExactSparse) -> tuple[Position, Position]:
    return exact.draw(rng, NUM_CHAINS), exact.draw(rng, NUM_REFERENCE)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kernel", "is_broken"), [(SpikeAndSlabGibbs(), False), (AsPublished(), True)], ids=["right", "as published"]
)
class TestAgainstEnumeration:
    """Weights are not whole numbers, some are zero. Each check raises a false alarm with probability 1e-4 at most."""

    @pytest.mark.full
    def test_exact_draws_stay_exact(
        self, rng: np.random.Generator, key: Key, kernel: SpikeAndSlabGibbs, is_broken: bool
    ) -> None:
        start, reference = start_and_reference(rng, POSTERIOR)
        states, info = advance(kernel, POSTERIOR.target(), key, start, 3)
        assert is_rejected(compare_draws(POSTERIOR.target(), states.position, reference)) == is_broken
        assert not np.any(info.diverging)

    @pytest.mark.full
    def test_patterns_have_their_frequencies(self, key: Key, kernel: SpikeAndSlabGibbs, is_broken: bool) -> None:
        """Independent chains, all from the model's start, 60 steps: a chi-squared test on all 2^p patterns."""
        start = jax.tree.map(
            lambda leaf: np.broadcast_to(leaf, (NUM_CHAINS, *leaf.shape)), POSTERIOR.model.initial_position
        )
        states, _ = advance(kernel, POSTERIOR.target(), key, start, 60)
        counts = POSTERIOR.pattern_counts(states.position["gamma"])
        test = stats.chisquare(counts, NUM_CHAINS * POSTERIOR.pattern_probabilities)
        assert (test.pvalue < FALSE_ALARM) == is_broken


@pytest.mark.full
@pytest.mark.statistical
def test_without_weights_it_returns_the_prior(rng: np.random.Generator, key: Key) -> None:
    """The paper's prior, whose variance has no mean: quantiles are compared. False alarms: 1e-4."""
    model = sparse_regression(3)
    target = CoresetTarget({"x": jnp.asarray(rng.normal(size=(4, 3))), "y": jnp.ones(4)}, jnp.zeros(4), model)

    def draw(count: int) -> Position:
        gamma = (rng.random((count, 3)) < 0.1).astype(np.int32)
        beta = np.where(gamma == 1, 1.0, 0.1) * rng.normal(size=(count, 3))
        return {"beta": beta, "gamma": gamma, "variance": stats.invgamma(0.05, scale=0.05).rvs(count, random_state=rng)}

    states, info = advance(SpikeAndSlabGibbs(), target, key, draw(NUM_CHAINS), 3)
    assert_plausible(compare_draws(target, states.position, draw(NUM_REFERENCE)))
    assert np.all(np.isfinite(states.log_density))
    assert np.all(np.isfinite(states.position["variance"]))
    assert not np.any(info.diverging)


class TestOneCoefficient:
    """A null feature of the paper: data precision 80, estimate -0.06, the variance held. No random numbers.

    Alternating beta | gamma and gamma | beta makes gamma a chain of two states, whose transition probabilities are
    one-dimensional integrals and whose law is known: P(gamma = 1) in proportion to q N(estimate; 0, scale^2 + 1/80).
    """

    precision, estimate = 80.0, -0.06
    prior = SpikeAndSlab()
    scales = np.array([0.1, 1.0])
    inclusion = np.array([0.9, 0.1])

    def conditional(self) -> Any:
        """beta given the data and each value of gamma."""
        total = self.precision + self.scales**-2.0
        return stats.norm(self.precision * self.estimate / total, total**-0.5)

    def stationary(self, chance_of_one: Any) -> float:
        """P(gamma = 1) of the chain that draws gamma from ``chance_of_one(beta)``."""
        conditional = self.conditional()
        beta = conditional.mean() + conditional.std() * np.linspace(-9.0, 9.0, 2001)[:, None]
        weights = conditional.pdf(beta)
        up = (weights * chance_of_one(beta)).sum(axis=0) / weights.sum(axis=0)
        return float(up[0] / (up[0] + 1.0 - up[1]))

    def test_odds_of_prior_densities(self) -> None:
        evidence = self.inclusion * stats.norm.pdf(self.estimate, 0.0, np.sqrt(self.scales**2 + 1.0 / self.precision))
        exact = evidence[1] / evidence.sum()
        ours = self.stationary(lambda beta: jax.nn.sigmoid(inclusion_log_odds(beta, self.prior)))
        assert ours == pytest.approx(exact, rel=1e-9)
        assert ours == pytest.approx(0.0176, abs=5e-5)

    def test_odds_of_densities_given_the_data_return_the_prior(self) -> None:
        def published(beta: np.ndarray) -> np.ndarray:
            weights = self.inclusion * self.conditional().pdf(beta[..., None])
            return weights[..., 1] / weights.sum(axis=-1)

        assert self.stationary(published) == pytest.approx(0.1, abs=2e-4)

    def test_the_odds_survive_extreme_coefficients(self) -> None:
        assert jax.nn.sigmoid(inclusion_log_odds(jnp.array([1e3, -1e150]), self.prior)).tolist() == [1.0, 1.0]
        even = inclusion_log_odds(jnp.array([0.30150]), self.prior)
        np.testing.assert_allclose(even, 0.0, atol=1e-3)


@pytest.mark.full
@pytest.mark.statistical
def test_conditionals_of_coefficients_and_variance(key: Key) -> None:
    """Against NumPy's Gaussian and SciPy's inverse gamma, two samples of 20 000 draws. False alarms: 1e-4."""
    prior, sums = POSTERIOR.prior, weighted_sums(POSTERIOR.target())
    x, y, w = POSTERIOR.rows["x"], POSTERIOR.rows["y"], POSTERIOR.weights
    gamma, variance = jnp.array([0, 1, 1]), jnp.array(0.3)
    fixed = np.array([0.1, -0.4, 0.9])

    @partial(jax.jit, compiler_options=QUICK_COMPILATION)
    def draw_many(keys: Key) -> tuple[jax.Array, jax.Array]:
        betas = jax.vmap(lambda one: draw_beta(one, gamma, variance, sums, prior))(keys)
        return betas, jax.vmap(lambda one: draw_variance(one, jnp.asarray(fixed), sums, prior))(keys)

    beta, variances = map(np.asarray, draw_many(jax.random.split(key, 20_000)))
    precision = x.T @ (w[:, None] * x) / 0.3 + np.diag(1.0 / np.array([0.2, 1.2, 1.2]) ** 2)
    scores = (beta - np.linalg.solve(precision, x.T @ (w * y) / 0.3)) @ np.linalg.cholesky(precision)
    rate = 0.5 * (3.0 * 0.5 + w @ (y - x @ fixed) ** 2)
    exact = stats.invgamma(0.5 * (3.0 + w.sum()), scale=rate)
    values = [stats.kstest(column, stats.norm.cdf).pvalue for column in scores.T]
    correlations = stats.norm.sf(np.sqrt(20_000) * np.abs(np.corrcoef(scores.T)[np.triu_indices(3, 1)])) * 2.0
    assert_plausible(np.array([*values, *correlations, stats.kstest(variances, exact.cdf).pvalue]))


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def step_once(target: CoresetTarget, position: Position, key: Key) -> GibbsState:
    kernel = SpikeAndSlabGibbs()
    return step_chains(kernel, key, init_chains(kernel, position, target), target)[0]


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def exact_log_density(target: CoresetTarget, positions: Position) -> jax.Array:
    return jax.vmap(target.log_density)(positions)


@pytest.mark.full
def test_whole_weights_are_repeated_rows(key: Key) -> None:
    """The same sums, the same log-density and, with the same key, the same step."""
    times = np.array([0, 3, 1, 2, 0, 1, 4, 1])
    weighted = replace(POSTERIOR, weights=times.astype(float)).target()
    repeated = jax.tree.map(lambda leaf: jnp.asarray(np.repeat(leaf, times, axis=0)), POSTERIOR.rows)
    copies = CoresetTarget(repeated, jnp.ones(times.sum()), POSTERIOR.model)
    start = starting_positions(POSTERIOR.model, key, 2)
    ours, expected = step_once(weighted, start, key), step_once(copies, start, key)
    for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def states_after_a_change(
    old: CoresetTarget, new: CoresetTarget, key: Key, positions: Position, *, is_restarted: bool
) -> tuple[GibbsState, GibbsState]:
    """States made under the old target, restarted under the new one or not, and after a step under the new one."""
    kernel = SpikeAndSlabGibbs()
    stale = init_chains(kernel, positions, old)
    fresh = restart_chains(kernel, stale, new)
    states = jax.tree.map(lambda restarted, kept: jnp.where(is_restarted, restarted, kept), fresh, stale)
    return states, step_chains(kernel, key, states, new)[0]


@pytest.mark.full
def test_log_density_follows_the_weights(rng: np.random.Generator, key: Key) -> None:
    """After a restart it is the new target's, before and after a step; the stale state's is not."""
    old, new = POSTERIOR.target(), POSTERIOR.target(3.0)
    start = POSTERIOR.draw(rng, NUM_CHAINS)
    for is_restarted in (True, False):
        for states in states_after_a_change(old, new, key, start, is_restarted=is_restarted):
            exact = exact_log_density(new, states.position)
            assert np.allclose(states.log_density, exact, rtol=1e-11, atol=1e-11) == is_restarted


@pytest.mark.statistical
@pytest.mark.parametrize("is_broken", [False, True], ids=["restarted", "stale"])
def test_steps_follow_the_weights(rng: np.random.Generator, key: Key, is_broken: bool) -> None:
    """Exact draws under the new weights, states made under three times as heavy ones. False alarms: 1e-4."""
    start, reference = start_and_reference(rng, POSTERIOR)
    target = POSTERIOR.target()
    _, moved = states_after_a_change(POSTERIOR.target(3.0), target, key, start, is_restarted=not is_broken)
    assert is_rejected(compare_draws(target, moved.position, reference)) == is_broken


class TestRounding:
    @pytest.mark.full
    def test_log_density_on_the_data_of_the_paper(self, rng: np.random.Generator, key: Key) -> None:
        """A sum of 50 000 terms from 66 numbers: within 1e-8 of the sum over the rows, which itself is near -2e5."""
        data = sparse_regression_data(rng)
        target = CoresetTarget(jax.tree.map(jnp.asarray, data), jnp.ones(50_000), sparse_regression(10))
        start = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], least_squares_start(data))
        for position in (start, starting_positions(target.model, key, 1)):
            moved = step_once(target, position, key)
            exact = exact_log_density(target, moved.position)
            np.testing.assert_allclose(moved.log_density, exact, rtol=0.0, atol=1e-8)

    def test_residuals_a_billion_times_smaller_than_the_response(self, rng: np.random.Generator) -> None:
        """Sums around zero, y'Wy - 2 beta'X'Wy + beta'X'WX beta, lose them; sums around the fit keep five digits."""
        x = rng.normal(size=(50, 3))
        beta = np.array([1e6, -2e6, 3e6])
        y = x @ beta + 1e-3 * rng.normal(size=50)
        weights = rng.uniform(0.0, 5.0, size=50)
        target = CoresetTarget({"x": jnp.asarray(x), "y": jnp.asarray(y)}, jnp.asarray(weights), sparse_regression(3))
        near = beta + 1e-4 * rng.normal(size=3)
        extended = y.astype(np.longdouble) - x.astype(np.longdouble) @ near.astype(np.longdouble)
        exact = float(weights @ (extended**2))
        around_fit = weighted_sums(target)
        around_zero = WeightedSums(
            jnp.zeros(3), around_fit.gram, x.T @ (weights * y), jnp.asarray(weights @ y**2), around_fit.total
        )
        assert float(around_fit.residual_squares(jnp.asarray(near))) == pytest.approx(exact, rel=1e-5)
        assert float(around_zero.residual_squares(jnp.asarray(near))) != pytest.approx(exact, rel=0.5)

    @pytest.mark.full
    @pytest.mark.parametrize("case", ["no weight", "fewer rows than features", "a feature twice", "a column of zeros"])
    def test_degenerate_rows(self, rng: np.random.Generator, key: Key, case: str) -> None:
        x = rng.normal(size=(2 if case == "fewer rows than features" else 9, 4))
        if case == "a feature twice":
            x[:, 1] = x[:, 0]
        if case == "a column of zeros":
            x[:, 2] = 0.0
        weights = np.zeros(len(x)) if case == "no weight" else rng.uniform(0.0, 2.0, len(x))
        rows = {"x": jnp.asarray(x), "y": jnp.asarray(rng.normal(size=len(x)))}
        target = CoresetTarget(rows, jnp.asarray(weights), sparse_regression(4))
        moved = step_once(target, starting_positions(target.model, key, 3), key)
        exact = exact_log_density(target, moved.position)
        assert np.all(np.isfinite(exact))
        np.testing.assert_allclose(moved.log_density, exact, rtol=1e-9, atol=1e-9)


def test_types_are_kept_and_no_row_is_evaluated_in_a_step(key: Key) -> None:
    start = starting_positions(POSTERIOR.model, key, 2)
    kernel, target = SpikeAndSlabGibbs(), POSTERIOR.target()
    before = jax.eval_shape(lambda: init_chains(kernel, start, target))
    after, _ = jax.eval_shape(lambda states: step_chains(kernel, key, states, target), before)
    assert after == before
    assert after.position["gamma"].dtype == jnp.int32
    assert {str(leaf.dtype) for leaf in jax.tree.leaves((after.sums, after.log_density))} == {"float64"}
    _, info = advance(kernel, target, key, POSTERIOR.draw(np.random.default_rng(0), NUM_CHAINS), 1)
    assert not np.any(info.num_evaluations)
    assert np.all(info.acceptance_rate == 1.0)


@pytest.mark.parametrize("model", [linear_regression(3), logistic_regression(3)], ids=lambda model: model.name)
def test_other_models_are_refused(model: Any) -> None:
    target = replace(POSTERIOR.target(), model=model)
    with pytest.raises(InputError, match=f"{model.name}.*sparse_regression"):
        SpikeAndSlabGibbs().check(model.initial_position, target)


# Coreset MCMC with this kernel

SIZE, CORESET_SIZE, NUM_FEATURES, NUM_DRAWS = 1_500, 30, 3, 128


@cache
def problem_and_training(seed: int) -> tuple[Problem, CoresetMCMC, Run]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SIZE, NUM_FEATURES))
    data = {"x": x, "y": x @ np.array([0.0, 0.32, 1.0]) + 3.0 * rng.normal(size=SIZE)}
    model = sparse_regression(NUM_FEATURES)
    selected = Uniform().select(rng, data, SIZE, CORESET_SIZE)
    problem = make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 2))
    schedule = DoublingEpochs(first_length=1_000, num_draws=NUM_DRAWS)
    method = CoresetMCMC(kernel=SpikeAndSlabGibbs(), num_iterations=3_000, epochs=schedule)
    method.check(problem)
    return problem, method, run(method, problem, jax.random.key(seed), num_steps=method.max_steps)


def enumerated(problem: Problem, selected: SelectedRows) -> ExactSparse:
    """The posterior given these rows; all others have weight zero."""
    weights = np.zeros(SIZE)
    weights[np.asarray(selected.indices)] = np.asarray(selected.weights)
    rows = jax.tree.map(np.asarray, problem.data.arrays)
    return ExactSparse(problem.model, rows, weights, np.linspace(0.5, 4.0, 1_000))


def drawn_patterns(problem: Problem, exact: ExactSparse, key: Key) -> np.ndarray:
    """Draws of gamma as sampling leaves them: (draw, chain, feature)."""
    sampling = SamplingProblem(exact.target(), problem.initial_positions)
    return run(FrozenSampling(SpikeAndSlabGibbs()), sampling, key, num_steps=4_000).history.position["gamma"][500:]


@pytest.mark.full
@pytest.mark.statistical
def test_coreset_mcmc_learns_a_posterior_with_discrete_parts(seed: int, key: Key) -> None:
    """Given 30 of 1 500 rows gamma has nearly the law that it has given all of them.

    KL between laws of gamma is at most that between laws of whole positions, which training estimates. The weights
    before training are ten times worse. Draws show the same Jensen-Shannon divergence as enumeration to within their
    noise: they are worth at least a fifth of their number, which makes five floors on average; four times that is left.
    """
    problem, method, trained = problem_and_training(seed)
    coreset = method.finish(trained.state, problem, kernel=None, num_chains=2).coreset
    assert coreset is not None
    before = SelectedRows(np.asarray(problem.indices), np.asarray(problem.initial_weights))
    learnt, untrained = enumerated(problem, coreset), enumerated(problem, before)
    full = enumerated(problem, SelectedRows(np.arange(SIZE), np.ones(SIZE)))
    divergences = [rel_entr(one.pattern_probabilities, full.pattern_probabilities).sum() for one in (learnt, untrained)]
    estimate = trained.history.kl_estimate[-1]
    assert divergences[0] < estimate < 0.5
    assert divergences[0] < 0.1 * divergences[1]
    ours, reference = drawn_patterns(problem, learnt, key), drawn_patterns(problem, full, jax.random.fold_in(key, 1))
    exact = jensenshannon(learnt.pattern_probabilities, full.pattern_probabilities) ** 2
    floor = jensen_shannon_floor(2**NUM_FEATURES, ours[..., 0].size, reference[..., 0].size)
    assert jensen_shannon(ours, reference) == pytest.approx(exact, abs=20.0 * floor)


def test_evaluations_are_counted(seed: int) -> None:
    """An update evaluates K (M + N) log-likelihoods, and K M more for the sums over the rows; steps add none."""
    _, _, trained = problem_and_training(seed)
    usual = 2 * (2 * CORESET_SIZE + SIZE)
    counts = set(trained.history.num_evaluations.tolist())
    assert counts == {usual, usual + NUM_DRAWS * (SIZE + CORESET_SIZE)}
