"""What every method of the registry promises, whatever it does: one suite, driven by the catalogue."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc import Model, RunError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.methods.registry import METHODS as REGISTERED
from coreset_mcmc.posterior.problem import Problem, make_problem, starting_positions
from tests.helpers.catalogue import METHODS, MethodEntry
from tests.helpers.compilations import compilations
from tests.helpers.trees import leaves_equal

SIZE, CORESET_SIZE, NUM_CHAINS = 100, 10, 2
FAST = {"coreset-mcmc", "least-squares", "sgld", "uniform"}
"""One of each kind; the fast tier leaves out the others, whose programs take minutes to compile."""
SLOW = {"austerity-mh", "confidence-mh", "sghmc"}
"""Those of the kind of SGLD; ``subsampling/test_subsampling_contract.py`` has their counts, seeds and checkpoints."""


def marks_of(entry: MethodEntry) -> list[pytest.MarkDecorator]:
    full = [] if str(entry) in FAST else [pytest.mark.full]
    return [*full, pytest.mark.slow] if str(entry) in SLOW else full


ENTRIES = [pytest.param(entry, marks=marks_of(entry)) for entry in METHODS]


def log_prior(position):
    return -0.5 * jnp.sum(position["slope"] ** 2) - 0.5 * position["noise"]["log_scale"] ** 2


def log_likelihood(position, batch):
    """A regression, and NaN beyond the limit of a row; data, so that a cliff needs no program of its own."""
    log_scale = position["noise"]["log_scale"]
    value = -0.5 * ((batch["y"] - batch["x"] @ position["slope"]) * jnp.exp(-log_scale)) ** 2 - log_scale
    return jnp.where(position["slope"][0] < batch["limit"], value, jnp.nan)


START = {"slope": np.array([0.9, -0.9]), "noise": {"log_scale": np.array(0.1)}}


class Counter:
    """Counts the rows whose log-likelihood is really evaluated, by a callback from compiled code.

    Several threads may call back at once. For a method that works by passes, copies of a row that fill a leaf up to its
    length are not counted; others may well look at a row twice.
    """

    def __init__(self, entry: MethodEntry) -> None:
        self.counts: list[int] = []
        self.has_copies = entry.make(1.0).works_by_passes
        self.model = Model(log_prior, self._log_likelihood, START, name="counted")

    def _log_likelihood(self, position, batch):
        def add(_, y):
            self.counts.append(np.unique(y).size if self.has_copies else y.size)

        jax.debug.callback(add, position["slope"][0], batch["y"])
        return log_likelihood(position, batch)

    def since_last(self) -> int:
        jax.effects_barrier()
        counts, self.counts = self.counts, []
        return sum(counts)


def make(entry: MethodEntry, model: Model, seed: int = 0, limit: float = 1e9) -> Problem:
    """A regression with positions nested in a pytree, started near its mode; its rows as the method wants them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SIZE, 2))
    y = x @ np.array([1.0, -1.0]) + rng.normal(size=SIZE)
    data = {"x": x, "y": y, "limit": np.full(SIZE, limit)}
    selected = Uniform().select(rng, data, SIZE, CORESET_SIZE)
    positions = starting_positions(model, jax.random.key(seed), 10)
    converted = to_rows(data) if entry.make(1.0).works_by_passes else to_array_data(data)
    return make_problem(model, converted, selected, positions)


class Stages(NamedTuple):
    training: Run
    trained: Any
    sampling: Run


def both_stages(entry: MethodEntry, problem: Problem, seed: int = 0, factor: float = 1.0, folder: Any = None) -> Stages:
    method = entry.make(factor)
    method.check(problem)
    checkpoints = [Checkpoint(folder / name) if folder else None for name in ("training.npz", "sampling.npz")]
    train_key, sample_key = jax.random.split(jax.random.key(seed))
    training = run(method, problem, train_key, num_steps=entry.steps, checkpoint=checkpoints[0])
    trained = method.finish(training.state, problem, kernel=None, num_chains=NUM_CHAINS)
    sampling = run(trained.sampler, trained.problem, sample_key, num_steps=entry.draws, checkpoint=checkpoints[1])
    return Stages(training, trained, sampling)


class First(NamedTuple):
    """The first run of a method on a model of its own, which no other method shares; later runs compile nothing."""

    entry: MethodEntry
    model: Model
    problem: Problem
    stages: Stages
    training_rows: int
    sampling_rows: int
    num_programs: int


@pytest.fixture(scope="module", params=ENTRIES, ids=str)
def first(request: pytest.FixtureRequest) -> First:
    """All tests of one method follow each other, and its programs compile once."""
    entry = request.param
    with jax.enable_x64(True):
        counter = Counter(entry)
        problem = make(entry, counter.model)
        before = num_compiled_programs()
        method = entry.make(1.0)
        method.check(problem)
        train_key, sample_key = jax.random.split(jax.random.key(0))
        training = run(method, problem, train_key, num_steps=entry.steps)
        training_rows = counter.since_last()
        trained = method.finish(training.state, problem, kernel=None, num_chains=NUM_CHAINS)
        counter.since_last()
        sampling = run(trained.sampler, trained.problem, sample_key, num_steps=entry.draws)
        num_programs = num_compiled_programs() - before
        stages = Stages(training, trained, sampling)
        return First(entry, counter.model, problem, stages, training_rows, counter.since_last(), num_programs)


def test_every_method_is_in_the_catalogue():
    assert [entry.name for entry in METHODS] == list(REGISTERED)
    assert all(isinstance(entry.make(1.0), REGISTERED[entry.name]) for entry in METHODS)


@pytest.mark.full
def test_draws_have_the_structure_and_types_of_positions(first):
    entry, problem, stages = first.entry, first.problem, first.stages
    draws = stages.sampling.history.position
    assert jax.tree.structure(draws) == jax.tree.structure(problem.position)
    for drawn, leaf in zip(jax.tree.leaves(draws), jax.tree.leaves(problem.position), strict=True):
        assert drawn.shape == (entry.draws, NUM_CHAINS, *leaf.shape)
        assert drawn.dtype == leaf.dtype
        assert np.isfinite(drawn).all()
    for name in ("log_density", "acceptance_rate", "diverging", "num_steps"):
        assert getattr(stages.sampling.history, name).shape == (entry.draws, NUM_CHAINS), name
    assert np.isfinite(stages.sampling.history.log_density).all()
    assert not np.array_equal(draws["slope"][:, 0], draws["slope"][:, 1]), "chains must have streams of their own"


def test_a_coreset_has_rows_and_weights(first):
    coreset = first.stages.trained.coreset
    assert (coreset is not None) == first.entry.make(1.0).uses_coreset_rows
    if coreset is not None:
        weights, indices = np.asarray(coreset.weights), np.asarray(coreset.indices)
        assert weights.shape == indices.shape
        assert 1 <= weights.size <= CORESET_SIZE
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() > 0
        assert ((indices >= 0) & (indices < SIZE)).all()
        assert np.unique(indices[weights > 0]).size == (weights > 0).sum(), "a row may carry weight once only"


@pytest.mark.full
def test_seeds_are_respected(first):
    one = first.stages
    same, other = (both_stages(first.entry, first.problem, seed) for seed in (0, 1))
    assert leaves_equal(one.sampling.history, same.sampling.history)
    assert leaves_equal(one.training.state, same.training.state)
    assert not leaves_equal(one.sampling.history.position, other.sampling.history.position)


def test_other_numbers_do_not_compile_again(first):
    """Not even the smallest program."""
    entry, problem = first.entry, make(first.entry, first.model, seed=3)
    both_stages(entry, problem, seed=5)
    with compilations() as compiled:
        both_stages(entry, problem, seed=5, factor=1.1)
    assert compiled == []


def test_checkpoints_do_not_change_a_bit(first, tmp_path):
    """On rows that nobody knows yet: a mode that is remembered takes fewer steps to find."""
    entry, problem, whole = first.entry, make(first.entry, first.model), first.stages
    half = MethodEntry(entry.name, entry.make, entry.steps // 2, entry.draws // 2)
    train_key, sample_key = jax.random.split(jax.random.key(0))
    method = entry.make(1.0)
    run(method, problem, train_key, num_steps=half.steps, checkpoint=Checkpoint(tmp_path / "training.npz"))
    run(
        whole.trained.sampler,
        whole.trained.problem,
        sample_key,
        num_steps=half.draws,
        checkpoint=Checkpoint(tmp_path / "sampling.npz"),
    )
    resumed = both_stages(entry, problem, folder=tmp_path)
    for stage in ("training", "sampling"):
        first, second = getattr(whole, stage), getattr(resumed, stage)
        assert leaves_equal(first.state, second.state)
        assert leaves_equal(first.history, second.history)
        assert first.num_evaluations == second.num_evaluations


@pytest.mark.full
def test_counts_of_evaluations_are_true(first):
    entry, training = first.entry, first.stages.training
    assert first.training_rows == training.num_evaluations + entry.difference(training)
    assert first.sampling_rows == first.stages.sampling.num_evaluations
    has_compiled_steps = not entry.make(1.0).on_host
    assert first.num_programs == has_compiled_steps + 1, "one for training and one for sampling"


@pytest.mark.full
def test_nothing_that_is_not_a_number_reaches_the_user(first):
    """A cliff that the posterior reaches: an error that says what to do, or no draw beyond that is not flagged."""
    message, history = "", None
    try:
        stages = both_stages(first.entry, make(first.entry, first.model, limit=0.95))
        collect = getattr(stages.trained.sampler, "collect", lambda history: history)
        history = collect(stages.sampling.history)
    except RunError as error:
        message = str(error)
    if history is None:
        assert "step" in message
        assert len(message) > 80, "the message must say what to do"
    else:
        is_inside = (history.position["slope"][..., 0] < 0.95) & np.isfinite(history.log_density)
        assert (is_inside | history.diverging).all()
        assert is_inside.any()
