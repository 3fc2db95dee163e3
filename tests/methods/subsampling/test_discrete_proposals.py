"""Proposals for positions with discrete parts: the ratio they report, the law they draw from, and what both leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.methods.subsampling.discrete_proposals import SpikeAndSlabProposal
from coreset_mcmc.models import linear_regression, sparse_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.sparse_exact import small_posterior

FALSE_ALARM = 1e-4
QUICK_COMPILATION = {"xla_backend_optimization_level": 0}
POSTERIOR = small_posterior(2)
WALK = SpikeAndSlabProposal(beta_variance=0.1, variance_variance=0.5, flip_probability=0.3)
PUBLISHED = SpikeAndSlabProposal(beta_variance=0.1, variance_variance=0.2, published=True)
BOTH = pytest.mark.parametrize("proposal", [WALK, PUBLISHED], ids=["walk or flip", "published"])
HERE = {"beta": np.array([0.4, -1.0]), "gamma": np.array([1, 0], np.int32), "variance": np.array(0.35)}


NUM_MOVES = 20_000


@partial(jax.jit, static_argnames="model", compiler_options=QUICK_COMPILATION)
def proposals_from(
    proposal: SpikeAndSlabProposal, key: Key, position: Position, model: Model
) -> tuple[Position, jax.Array]:
    return jax.vmap(lambda one: proposal.propose(one, position, model))(jax.random.split(key, NUM_MOVES))


def many_from(proposal: SpikeAndSlabProposal, key: Key) -> tuple[Any, np.ndarray]:
    return jax.tree.map(np.asarray, proposals_from(proposal, key, HERE, POSTERIOR.model))


def log_density_of_move(proposal: SpikeAndSlabProposal, here: Any, there: Any) -> np.ndarray:
    """log Q(there | here) by SciPy; either end may have a leading axis."""
    walk = stats.norm.logpdf(there["beta"], here["beta"], np.sqrt(proposal.beta_variance)).sum(axis=-1)
    deviation = np.sqrt(proposal.variance_variance)
    if proposal.published:
        lowest = -here["variance"] / deviation
        step = stats.truncnorm.logpdf(there["variance"], lowest, np.inf, loc=here["variance"], scale=deviation)
        return walk + step - 2.0 * np.log(2.0)
    growth = stats.lognorm.logpdf(there["variance"], deviation, scale=here["variance"])
    is_flip = np.any(here["gamma"] != there["gamma"], axis=-1)
    return np.where(
        is_flip, np.log(proposal.flip_probability / 2.0), np.log1p(-proposal.flip_probability) + walk + growth
    )


@BOTH
def test_reported_ratio_is_that_of_the_densities(proposal: SpikeAndSlabProposal, key: Key) -> None:
    there, ratios = many_from(proposal, key)
    expected = log_density_of_move(proposal, there, HERE) - log_density_of_move(proposal, HERE, there)
    np.testing.assert_allclose(ratios, expected, atol=1e-9)
    assert np.ptp(ratios) > 0.5


def test_a_flip_changes_one_indicator_and_nothing_else(key: Key) -> None:
    there, _ = many_from(WALK, key)
    flips = np.sum(there["gamma"] != HERE["gamma"], axis=1)
    assert set(flips) == {0, 1}
    is_unmoved = np.all(there["beta"] == HERE["beta"], axis=1) & (there["variance"] == HERE["variance"])
    np.testing.assert_array_equal(is_unmoved, flips == 1)


@pytest.mark.statistical
@BOTH
def test_moves_follow_that_density(proposal: SpikeAndSlabProposal, key: Key) -> None:
    """Kolmogorov-Smirnov for continuous parts, binomial for discrete ones, 20 000 moves. False alarms: 1e-4."""
    there, _ = many_from(proposal, key)
    is_flip = np.zeros(NUM_MOVES, bool)
    deviation = np.sqrt(proposal.variance_variance)
    if proposal.published:
        law = stats.truncnorm(-0.35 / deviation, np.inf, loc=0.35, scale=deviation)
        chances = [(there["gamma"][:, 0] == 1, 0.5), (there["gamma"][:, 1] == 1, 0.5)]
        chances += [(there["gamma"][:, 0] == there["gamma"][:, 1], 0.5)]
    else:
        law = stats.lognorm(deviation, scale=0.35)
        flips = there["gamma"] != HERE["gamma"]
        is_flip = flips.any(axis=1)
        chances = [(is_flip, 0.3), (flips[is_flip, 0], 0.5)]
    scores = (there["beta"][~is_flip] - HERE["beta"]) / np.sqrt(0.1)
    values = [stats.kstest(column, stats.norm.cdf).pvalue for column in scores.T]
    values += [stats.kstest(there["variance"][~is_flip], law.cdf).pvalue]
    values += [stats.binomtest(int(hits.sum()), len(hits), chance).pvalue for hits, chance in chances]
    assert min(values) > FALSE_ALARM / len(values)


@pytree
@dataclass(frozen=True)
class ForgetsTheRatio(SpikeAndSlabProposal):
    """As if the proposal were symmetric."""

    def propose(self, key: Key, position: Position, model: Model) -> tuple[Position, jax.Array]:
        proposal, ratio = super().propose(key, position, model)
        return proposal, jnp.zeros_like(ratio)


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def metropolis_hastings(
    proposal: SpikeAndSlabProposal, target: CoresetTarget, key: Key, positions: Position
) -> tuple[Position, jax.Array]:
    """Forty exact decisions of each of many independent chains, and how often they moved."""

    def one_step(number: jax.Array, carry: tuple[Position, jax.Array], chain_key: Key) -> tuple[Position, jax.Array]:
        position, count = carry
        propose_key, decide_key = jax.random.split(jax.random.fold_in(chain_key, number))
        there, ratio = proposal.propose(propose_key, position, target.model)
        gain = target.log_density(there) - target.log_density(position) + ratio
        moves = jnp.log(jax.random.uniform(decide_key)) < gain
        return jax.tree.map(lambda new, old: jnp.where(moves, new, old), there, position), count + moves

    def run_chain(chain_key: Key, position: Position) -> tuple[Position, jax.Array]:
        start = (position, jnp.zeros((), jnp.int32))
        return jax.lax.fori_loop(0, 40, lambda number, carry: one_step(number, carry, chain_key), start)

    return jax.vmap(run_chain)(jax.random.split(key, positions["variance"].shape[0]), positions)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("published", [False, True], ids=["walk or flip", "published"])
@pytest.mark.parametrize(("proposal_class", "is_broken"), [(SpikeAndSlabProposal, False), (ForgetsTheRatio, True)])
def test_exact_draws_stay_exact(
    rng: np.random.Generator, key: Key, published: bool, proposal_class: type, is_broken: bool
) -> None:
    """Against enumeration: patterns by chi-squared, continuous parts by Kolmogorov-Smirnov. False alarms: 1e-4."""
    proposal = proposal_class(beta_variance=0.1, variance_variance=0.2, published=published)
    start, reference = POSTERIOR.draw(rng, 6_000), POSTERIOR.draw(rng, 60_000)
    moved, num_moves = metropolis_hastings(proposal, POSTERIOR.target(), key, start)
    assert np.mean(num_moves) > 1.0
    counts = POSTERIOR.pattern_counts(moved["gamma"])
    values = [stats.chisquare(counts, 6_000 * POSTERIOR.pattern_probabilities).pvalue]
    values += [stats.ks_2samp(moved["variance"], reference["variance"], method="asymp").pvalue]
    columns = zip(np.asarray(moved["beta"]).T, reference["beta"].T, strict=True)
    values += [stats.ks_2samp(ours, theirs, method="asymp").pvalue for ours, theirs in columns]
    assert (min(values) < FALSE_ALARM / len(values)) == is_broken


@pytest.mark.full
@pytest.mark.parametrize("published", [False, True])
def test_at_the_scale_of_the_paper_nothing_overflows_and_types_are_kept(published: bool, key: Key) -> None:
    model = sparse_regression(10)
    position = {"beta": np.full(10, 5.0), "gamma": np.ones(10, np.int32), "variance": np.array(625.0)}
    there, ratios = proposals_from(SpikeAndSlabProposal(published=published), key, position, model)
    shapes = jax.tree.map(lambda leaf: (NUM_MOVES, *leaf.shape), position)
    assert jax.tree.map(np.shape, there) == shapes
    assert jax.tree.map(lambda leaf: str(leaf.dtype), there) == jax.tree.map(lambda leaf: str(leaf.dtype), position)
    assert np.all(np.isfinite(ratios))
    changed = np.abs(np.asarray(there["variance"]) - 625.0)
    assert 0.0 < changed.max() < (0.01 if published else 25.0)
    assert set(np.unique(there["gamma"])) == {0, 1}
    assert len(np.unique(there["gamma"], axis=0)) > (100 if published else 10)


def test_other_numbers_do_not_compile_again(key: Key) -> None:
    many_from(WALK, key)
    before = proposals_from._cache_size()
    many_from(SpikeAndSlabProposal(0.2, 0.3, 0.6), key)
    assert proposals_from._cache_size() == before


@pytest.mark.parametrize(
    "options", [{"beta_variance": 0.0}, {"variance_variance": -1.0}, {"flip_probability": 1.0}], ids=str
)
def test_bad_numbers_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        SpikeAndSlabProposal(**options)


def test_other_models_are_refused() -> None:
    model = linear_regression(2)
    with pytest.raises(InputError, match=r"linear_regression.*GaussianProposal"):
        SpikeAndSlabProposal().check(model.initial_position, model)
    SpikeAndSlabProposal().check(HERE, POSTERIOR.model)
