"""Decisions of the sequential tests against their formulas, exact Metropolis-Hastings, edge cases and broken twins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from coreset_mcmc import Model
from coreset_mcmc.core.types import pytree
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.methods.subsampling.approximate_mh import acceptance_threshold
from coreset_mcmc.methods.subsampling.austerity import TTest, t_test
from coreset_mcmc.methods.subsampling.confidence import FIRST_BLOCK, EmpiricalBernstein
from coreset_mcmc.methods.subsampling.lazy_batches import row_order
from coreset_mcmc.methods.subsampling.sequential import decide
from coreset_mcmc.models import logistic_regression
from tests.helpers.problems import SIZE, logistic_data

pytestmark = pytest.mark.full

CHANGES = Model(lambda position: jnp.zeros(()), lambda position, batch: position * batch, np.zeros(()), name="changes")
"""Rows are the changes themselves: l_n = position * x_n, so going from 0 to 1 changes row n by x_n."""

NUM_ROWS, NUM_TRIPLES = 1_130, 300


@jax.jit
def compiled_decisions(keys, test, changes, thresholds, bound):
    data = ArrayData(changes)
    one = jax.vmap(
        lambda key, threshold: decide(key, test, CHANGES, data, jnp.zeros(()), jnp.ones(()), threshold, bound)
    )
    return one(keys, thresholds)


def decide_many(keys, test, changes, thresholds, bound=0.0):
    """Decisions for pairs of random orders and thresholds; plain arrays, so that tests share compiled programs."""
    decisions = compiled_decisions(
        keys, test, np.asarray(changes, float), np.asarray(thresholds, float), np.asarray(bound, float)
    )
    return jax.tree.map(np.asarray, decisions)


def decide_one(test, changes, threshold, bound=0.0):
    """One of as many decisions as elsewhere, to share the compiled program."""
    keys, thresholds = jax.random.split(jax.random.key(0), NUM_TRIPLES), np.full(NUM_TRIPLES, threshold)
    return jax.tree.map(lambda leaf: leaf[0], decide_many(keys, test, changes, thresholds, bound))


@partial(jax.jit, static_argnums=1)
def orders(keys, size):
    return jax.vmap(lambda key: row_order(key, size)(jnp.arange(size)))(keys)


def reference_t_test(changes, threshold, batch_size, error, is_corrected=True):
    """The formulas of Korattikara et al. with scipy's tail: (accepted, rows used)."""
    size = len(changes)
    for count in [*range(batch_size, size, batch_size), size]:
        seen = changes[:count]
        if count == size:
            break
        correction = np.sqrt(1 - (count - 1) / (size - 1)) if is_corrected else 1.0
        scale = seen.std(ddof=1) / np.sqrt(count) * correction
        if special.stdtr(count - 1, -abs(seen.mean() - threshold) / scale) < error:
            break
    return seen.mean() > threshold, count


def reference_bernstein(changes, threshold, bound, error=0.05, last_batch_only=False):
    """The bound of Bardenet et al.; ``bound`` None is the largest change seen."""
    size, count, previous, look = len(changes), 1, 0, 1
    while count < size:
        seen = changes[previous:count] if last_batch_only else changes[:count]
        largest = np.abs(seen).max() if bound is None else bound
        doubt = np.log(3 / (error / (2 * look**2)))
        distance = seen.std() * np.sqrt(2 * doubt / count) + 6 * largest * doubt / count
        if count > 1 and abs(changes[:count].mean() - threshold) >= distance:
            break
        previous, count, look = count, min(size, 2 * count), look + 1
    return changes[:count].mean() > threshold, count


def triples(rng, key, size=NUM_ROWS):
    """Changes with a skew, and thresholds from hopeless to obvious."""
    changes = rng.gamma(2.0, size=size) - 1.9
    spread = changes.std() / np.sqrt(size)
    thresholds = changes.mean() + spread * rng.normal(size=NUM_TRIPLES) * 10 ** rng.uniform(-1, 2.5, size=NUM_TRIPLES)
    keys = jax.random.split(key, NUM_TRIPLES)
    return changes, thresholds, keys, changes[np.asarray(orders(keys, size))]


def compare(decisions, expected):
    accepted, count = zip(*expected, strict=True)
    return np.array_equal(decisions.is_accepted, accepted) and np.array_equal(decisions.num_used, count)


def test_austerity_follows_its_formulas(rng, key):
    changes, thresholds, keys, ordered = triples(rng, key)
    decisions = decide_many(keys, t_test(NUM_ROWS, 50, 0.05), changes, thresholds)
    expected = [reference_t_test(*pair, 50, 0.05) for pair in zip(ordered, thresholds, strict=True)]
    assert compare(decisions, expected)
    assert len(np.unique(decisions.num_used)) > 5
    uncorrected = [reference_t_test(*pair, 50, 0.05, False) for pair in zip(ordered, thresholds, strict=True)]
    assert not compare(decisions, uncorrected)


@pytest.mark.parametrize("has_bound", [True, False])
def test_confidence_follows_its_formulas(rng, key, has_bound):
    changes, thresholds, keys, ordered = triples(rng, key)
    bound = np.abs(changes).max()
    test = EmpiricalBernstein(0.05, 2.0, 2.0, has_bound)
    decisions = decide_many(keys, test, changes, thresholds, bound)
    known = bound if has_bound else None
    expected = [reference_bernstein(*pair, known) for pair in zip(ordered, thresholds, strict=True)]
    assert compare(decisions, expected)
    assert len(np.unique(decisions.num_used)) > 5
    if not has_bound:
        careless = [
            reference_bernstein(*pair, None, last_batch_only=True) for pair in zip(ordered, thresholds, strict=True)
        ]
        assert not compare(decisions, careless)


def test_looks_are_the_same_in_wide_blocks(rng, key):
    """Beyond 4 000 rows blocks hold ten looks each; the decisions must not notice, only the rows evaluated do."""
    size = 6_000
    changes, thresholds, keys, ordered = triples(rng, key, size)
    decisions = decide_many(keys, t_test(size, 100, 0.01), changes, thresholds)
    expected = [reference_t_test(*pair, 100, 0.01) for pair in zip(ordered, thresholds, strict=True)]
    assert compare(decisions, expected)
    late = decisions.num_used > 4_000
    assert late.any()
    assert np.array_equal(decisions.num_rows[~late], decisions.num_used[~late])
    assert (decisions.num_rows >= decisions.num_used).all()
    assert (decisions.num_rows - decisions.num_used < 1_000).all()


@pytree
@dataclass(frozen=True)
class NeverForced(TTest):
    """A broken twin that does not look at all rows in the end."""

    def looks(self, size):
        return super().looks(size)[:-1]


LOGISTIC = logistic_regression(2)


@pytest.fixture(scope="module")
def exact_decisions():
    """Random (theta, theta*, u) for logistic regression and what exact Metropolis-Hastings does with them."""
    rng = np.random.default_rng(5)
    data = logistic_data()
    theta = rng.normal(size=(NUM_TRIPLES, 3)) * 0.3 + np.array([0.0, 1.0, 1.0])
    proposal = theta + rng.normal(size=theta.shape) * 10 ** rng.uniform(-3, -0.5, size=(NUM_TRIPLES, 1))
    log_uniform = np.log(rng.random(NUM_TRIPLES))

    def log_posterior(beta):
        signed = (1 - 2 * data["y"]) * (beta[0] + data["x"] @ beta[1:])
        return -np.logaddexp(0, signed).sum() - np.log1p(beta**2).sum()

    ratio = np.array([log_posterior(b) - log_posterior(a) for a, b in zip(theta, proposal, strict=True)])
    return data, theta, proposal, log_uniform, log_uniform < ratio


@jax.jit
def logistic_decisions(key, test, data, theta, proposal, log_uniform):
    def one(key, theta, proposal, log_uniform):
        here, there = {"beta": theta}, {"beta": proposal}
        threshold = acceptance_threshold(LOGISTIC, here, there, jnp.zeros(()), log_uniform, data.size)
        bound = LOGISTIC.change_bound.bound(
            data.max_over_rows(lambda batch: jnp.max(LOGISTIC.change_bound.row_statistic(batch))), here, there
        )
        return decide(key, test, LOGISTIC, data, here, there, threshold, bound)

    return jax.vmap(one)(jax.random.split(key, theta.shape[0]), theta, proposal, log_uniform)


EXACT_TESTS = {
    "austerity": lambda: t_test(SIZE, 60, 0.0),
    "austerity, tiny error": lambda: t_test(SIZE, 60, 1e-200),
    "confidence": lambda: EmpiricalBernstein(0.0, 2.0, 2.0, True),
}


@pytest.mark.parametrize("test", EXACT_TESTS.values(), ids=EXACT_TESTS.keys())
def test_no_error_is_exact_metropolis_hastings(exact_decisions, key, test):
    data, theta, proposal, log_uniform, expected = exact_decisions
    decisions = logistic_decisions(key, test(), to_array_data(data), theta, proposal, log_uniform)
    np.testing.assert_array_equal(decisions.is_accepted, expected)
    assert 0.1 < expected.mean() < 0.9


def test_without_the_stop_at_the_last_row_decisions_are_lost(exact_decisions, key):
    data, theta, proposal, log_uniform, expected = exact_decisions
    broken = NeverForced(t_test(SIZE, 60, 0.0).quantiles, 60)
    decisions = logistic_decisions(key, broken, to_array_data(data), theta, proposal, log_uniform)
    assert not np.array_equal(decisions.is_accepted, expected)


def test_valid_bound_is_right_more_often_than_promised(exact_decisions, key):
    """At delta = 0.05, 300 decisions may hold 15 errors; the bound is conservative, so more than that is a mistake."""
    data, theta, proposal, log_uniform, expected = exact_decisions
    test = EmpiricalBernstein(0.05, 2.0, 2.0, True)
    decisions = logistic_decisions(key, test, to_array_data(data), theta, proposal, log_uniform)
    assert np.sum(decisions.is_accepted != expected) <= 15
    assert (decisions.num_used < SIZE).any()


def test_heuristic_bound_is_only_a_heuristic(key):
    """One row that outweighs all others: the model's bound waits for it, the largest change seen does not."""
    changes = np.full(NUM_ROWS, -0.001) + 1e-4 * np.sin(np.arange(NUM_ROWS))
    changes[7] = 10.0
    keys, thresholds = jax.random.split(key, NUM_TRIPLES), np.zeros(NUM_TRIPLES)
    sure = decide_many(keys, EmpiricalBernstein(0.05, 2.0, 2.0, True), changes, thresholds, 10.0)
    hopeful = decide_many(keys, EmpiricalBernstein(0.05, 2.0, 2.0, False), changes, thresholds, 10.0)
    assert sure.is_accepted.all()
    assert hopeful.is_accepted.mean() < 0.5


EASY = np.random.default_rng(0).normal(size=NUM_ROWS)


def test_easy_decisions_take_few_rows():
    austere = decide_one(t_test(NUM_ROWS, 50, 0.05), EASY, 2.0)
    assert (int(austere.num_used), int(austere.num_rows), bool(austere.is_accepted)) == (50, 50, False)
    confident = decide_one(EmpiricalBernstein(0.05, 2.0, 2.0, True), EASY, -40.0, bound=np.abs(EASY).max())
    assert bool(confident.is_accepted)
    assert int(confident.num_used) < int(confident.num_rows) == FIRST_BLOCK


def test_confidence_never_stops_at_one_row():
    decision = decide_one(EmpiricalBernstein(0.05, 2.0, 2.0, False), EASY, 1e9)
    assert int(decision.num_used) == 2


@pytest.mark.parametrize("threshold", [0.2, 0.25, 0.3])
def test_equal_changes_have_no_spread(threshold):
    """s = 0: the first look is enough unless mean and threshold agree, and then all rows are not enough to accept."""
    decision = decide_one(t_test(NUM_ROWS, 50, 0.05), np.full(NUM_ROWS, 0.25), threshold)
    assert bool(decision.is_accepted) == (threshold < 0.25)
    assert int(decision.num_used) == (NUM_ROWS if threshold == 0.25 else 50)


def test_no_error_looks_at_all_rows_even_without_spread():
    for test in (t_test(NUM_ROWS, 50, 0.0), EmpiricalBernstein(0.0, 2.0, 2.0, False)):
        assert int(decide_one(test, np.full(NUM_ROWS, 0.25), 0.0).num_used) == NUM_ROWS


@pytest.mark.parametrize(
    ("size", "test"),
    [(1, EmpiricalBernstein(0.05, 2.0, 2.0, False)), (1, "t"), (3, "t")],
    ids=["one row, confidence", "one row, austerity", "three rows, austerity"],
)
def test_a_few_rows(size, test):
    changes = np.arange(size) - 0.5
    test = t_test(size, 100, 0.05) if test == "t" else test
    for threshold in (changes.mean() - 1e-9, changes.mean(), changes.mean() + 1e-9):
        decision = decide_one(test, changes, threshold)
        assert bool(decision.is_accepted) == (changes.mean() > threshold)
        assert int(decision.num_used) == int(decision.num_rows) == size


def test_impossible_proposals_are_refused():
    test = t_test(NUM_ROWS, 50, 0.05)
    unseen = decide_one(test, EASY, np.inf)
    assert not bool(unseen.is_accepted)
    assert int(unseen.num_rows) == 0
    for bad in (-np.inf, np.nan):
        changes = np.where(np.arange(NUM_ROWS) < 600, bad, EASY + 5.0)
        decision = decide_one(test, changes, -100.0)
        assert not bool(decision.is_accepted)
        assert int(decision.num_rows) == 50
        assert np.isfinite(float(decision.total))


def test_impossible_position_can_be_left(key):
    """l_n = x_n / position is infinite at 0: a chain that got there leaves for any possible proposal."""
    model = Model(lambda position: jnp.zeros(()), lambda position, batch: -jnp.abs(batch) / position, name="pole")
    decision = decide(
        key, t_test(NUM_ROWS, 50, 0.05), model, to_array_data(EASY), jnp.zeros(()), jnp.ones(()), jnp.zeros(()), 0.0
    )
    assert bool(decision.is_accepted)
    assert bool(decision.is_possible)


@pytree
@dataclass(frozen=True)
class Uncorrected(TTest):
    """A broken twin without the finite population correction."""

    def is_enough(self, evidence, threshold, bound, size):
        return super().is_enough(evidence, threshold, bound, 10**12)


@pytest.mark.statistical
def test_error_of_a_look_is_nominal(rng, key):
    """The mean lies on the threshold and half of the rows are seen: each side is chosen with probability epsilon.

    4 000 random orders; the band is 4 standard errors, false alarms below 2 in 10 000. Without the correction the test
    stops with probability P(T > 1.65 sqrt 2) = 0.01 instead of 0.05, eight times the band's half-width away.
    """
    size, num_orders, error = 400, 4_000, 0.05
    changes = rng.normal(size=size)
    keys, thresholds = jax.random.split(key, num_orders), np.full(num_orders, changes.mean())
    exact = t_test(size, size // 2, error)
    band = 4 * np.sqrt(error * (1 - error) / num_orders)

    def early(test):
        decisions = decide_many(keys, test, changes, thresholds)
        is_early = decisions.num_used < size
        return [np.mean(is_early & (decisions.is_accepted == side)) for side in (True, False)]

    assert np.abs(np.array(early(exact)) - error).max() < band
    assert np.abs(np.array(early(Uncorrected(exact.quantiles, exact.batch_size))) - error).min() > band
