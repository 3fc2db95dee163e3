"""What the four methods promise to the driver and to users: counts, seeds, checkpoints, shapes, refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc import InputError, Model
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sampling import SamplingInfo
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH, GaussianProposal, ModeSearch
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.trees import leaves_equal

NUM_ROWS, NUM_CHAINS = 150, 3
EVALUATED = []
"""Numbers of rows in each evaluation of the log-likelihood, written by the running program itself."""


def log_prior(position):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def counting_log_likelihood(position, batch):
    count = batch["y"].shape[0]
    jax.debug.callback(lambda _: EVALUATED.append(count), position["offset"])
    return -0.5 * (batch["y"] - position["offset"] - batch["x"] @ position["slopes"]) ** 2


MODEL = Model(log_prior, counting_log_likelihood, {"offset": np.zeros(()), "slopes": np.zeros(2)}, name="counting")


def make(model=MODEL, start=None, num_starts=2):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(NUM_ROWS, 2))
    data = {"x": x, "y": 1.0 + x @ np.array([1.0, -1.0]) + rng.normal(size=NUM_ROWS)}
    starts = starting_positions(model, jax.random.key(0), num_starts, start)
    return make_problem(model, to_array_data(data), SelectedRows(np.arange(2), np.ones(2)), starts)


SEARCH = ModeSearch(subsample_size=20, max_iterations=25)
METHODS = {
    "austerity": AusterityMH(GaussianProposal(0.01), batch_size=40),
    "confidence": ConfidenceMH(GaussianProposal(0.01)),
    "sgld": SGLD(1e-3, subsample_size=30, mode=SEARCH),
    "sghmc": SGHMC(1e-2, num_leapfrog=4, subsample_size=30, mode=SEARCH),
}


@pytest.fixture(params=METHODS.values(), ids=METHODS.keys())
def method(request):
    return request.param


def finished(method, problem, key, num_chains=NUM_CHAINS):
    method.check(problem)
    trained = run(method, problem, key, num_steps=method.max_steps)
    return trained, method.finish(trained.state, problem, kernel=None, num_chains=num_chains)


@pytest.mark.full
def test_draws_counts_seeds_checkpoints(method, key, tmp_path):
    """One test, because the four programs are what takes time."""
    problem = make()
    EVALUATED.clear()
    trained, (sampler, sampling_problem, coreset, law) = finished(method, problem, key)
    jax.effects_barrier()
    assert coreset is None
    assert law is Law.APPROXIMATE
    assert trained.num_steps == method.max_steps
    assert trained.num_evaluations == sum(EVALUATED)

    EVALUATED.clear()
    whole = run(sampler, sampling_problem, key, num_steps=30)
    jax.effects_barrier()
    assert whole.num_evaluations == sum(EVALUATED)
    info = whole.history
    assert set(SamplingInfo._fields) <= set(info._fields)
    assert info.position["offset"].shape == (30, NUM_CHAINS)
    assert info.position["slopes"].shape == (30, NUM_CHAINS, 2)
    for field in ("log_density", "acceptance_rate", "diverging", "num_steps"):
        assert getattr(info, field).shape == (30, NUM_CHAINS)
    assert np.isfinite(info.log_density).all()
    assert not info.diverging.any()
    assert isinstance(sampler.describe(info), str)
    assert (np.ptp(info.position["offset"], axis=1)[1:] > 0).any(), "chains share a stream"
    if isinstance(method, AusterityMH | ConfidenceMH):
        assert (info.num_evaluations == 2 * info.num_steps.sum(axis=1)).all()
        assert (info.num_steps <= NUM_ROWS).all()
    assert leaves_equal(info, run(sampler, sampling_problem, key, num_steps=30).history)
    other = run(sampler, sampling_problem, jax.random.key(99), num_steps=30)
    assert not leaves_equal(info.position, other.history.position)

    checkpoint = Checkpoint(tmp_path / "run.npz")
    run(sampler, sampling_problem, key, num_steps=13, checkpoint=checkpoint)
    resumed = run(sampler, sampling_problem, key, num_steps=30, checkpoint=checkpoint)
    assert leaves_equal(whole.state, resumed.state)
    assert leaves_equal(info, resumed.history)
    assert resumed.num_evaluations == whole.num_evaluations


CHANGED = {
    "austerity": AusterityMH(GaussianProposal(0.02), batch_size=40, error=0.1),
    "confidence": ConfidenceMH(GaussianProposal(0.02), error=0.1, power=3.0),
    "sgld": SGLD(2e-3, subsample_size=30, mode=ModeSearch(subsample_size=20, max_iterations=5, learning_rate=1e-2)),
    "sghmc": SGHMC(2e-2, 0.1, 0.05, 3, subsample_size=30, mode=SEARCH),
}


@pytest.mark.full
@pytest.mark.parametrize("name", METHODS)
def test_numbers_do_not_compile_again(name, key):
    """Programs are shared with the test above."""
    for method in (METHODS[name], CHANGED[name]):
        _, (sampler, sampling_problem, *_) = finished(method, make(), key)
        run(sampler, sampling_problem, key, num_steps=3)
        before = num_compiled_programs() if method is METHODS[name] else before  # noqa: F821
    assert num_compiled_programs() == before


def test_log_density_estimates_the_log_posterior(key):
    """With all rows in every decision the estimate is the log posterior itself."""
    problem = make()
    method = AusterityMH(GaussianProposal(0.01), 40, error=0.0)
    _, (sampler, sampling_problem, *_) = finished(method, problem, key)
    last = jax.tree.map(lambda leaf: leaf[-1], run(sampler, sampling_problem, key, num_steps=5).history)

    @jax.jit
    @jax.vmap
    def log_posterior(position):
        return MODEL.log_prior(position) + jnp.sum(MODEL.log_likelihood(position, problem.data.arrays))

    np.testing.assert_allclose(last.log_density, log_posterior(last.position), rtol=1e-12)


def test_chains_take_different_starts_while_they_last(key):
    starts = iter([{"offset": 0.0, "slopes": np.zeros(2)}, {"offset": 1.0, "slopes": np.ones(2)}])
    problem = make(start=lambda _: next(starts))
    _, (_, sampling_problem, *_) = finished(AusterityMH(), problem, key)
    np.testing.assert_array_equal(sampling_problem.initial_positions["offset"], [0.0, 1.0, 0.0])


DISCRETE = {"offset": np.zeros(()), "slopes": np.zeros(2, int)}


def test_discrete_positions_are_refused(method):
    with pytest.raises(InputError, match="slopes"):
        method.check(make(start=DISCRETE))


def test_models_without_gradients_are_refused():
    flat = Model(log_prior, counting_log_likelihood, MODEL.initial_position, differentiable=False)
    for method in (SGLD(), SGHMC()):
        with pytest.raises(InputError, match="gradients"):
            method.check(make(flat))


def test_a_bound_must_exist_if_it_is_asked_for():
    with pytest.raises(InputError, match="change_bound"):
        ConfidenceMH(bound="model").check(make())
    ConfidenceMH(bound="auto").check(make())
    assert not ConfidenceMH().uses_model_bound(MODEL)
    assert ConfidenceMH().uses_model_bound(logistic_regression(2))
    assert not ConfidenceMH(bound="heuristic").uses_model_bound(logistic_regression(2))


BAD = [
    (lambda: GaussianProposal(0.0), "variance"),
    (lambda: GaussianProposal(np.array([1.0, -1.0])), "variance"),
    (lambda: AusterityMH(batch_size=1), "batch_size"),
    (lambda: AusterityMH(error=0.5), "error"),
    (lambda: AusterityMH(error=-0.1), "error"),
    (lambda: ConfidenceMH(error=1.0), "error"),
    (lambda: ConfidenceMH(growth=1.0), "growth"),
    (lambda: ConfidenceMH(power=1.0), "power"),
    (lambda: ConfidenceMH(bound="best"), "bound"),
    (lambda: SGLD(step_size=0.0), "step_size"),
    (lambda: SGLD(subsample_size=0), "subsample_size"),
    (lambda: SGHMC(step_size=-1.0), "step_size"),
    (lambda: SGHMC(noise_estimate=0.5), "noise_estimate"),
    (lambda: SGHMC(num_leapfrog=0), "num_leapfrog"),
    (lambda: SGHMC(friction=0.0), "friction"),
    (lambda: ModeSearch(tolerance=1e-3), "tolerance"),
    (lambda: ModeSearch(max_iterations=-1), "max_iterations"),
    (lambda: AusterityMH(GaussianProposal(np.ones(4))).check(make()), "variance"),
]


@pytest.mark.parametrize(("build", "subject"), BAD)
def test_bad_arguments_are_refused(build, subject):
    with pytest.raises(InputError, match=subject):
        build()


def test_gaussian_proposal_takes_variances(key):
    """Not standard deviations: 4 000 steps of one coordinate each, a relative error of the variance of 0.022."""
    proposal = GaussianProposal(np.array([0.25, 4.0, 1.0]))
    start = {"offset": jnp.zeros(()), "slopes": jnp.zeros(2)}
    moved, log_ratio = jax.vmap(lambda key: proposal.propose(key, start, MODEL))(jax.random.split(key, 4_000))
    variances = [np.var(moved["offset"]), *np.var(moved["slopes"], axis=0)]
    np.testing.assert_allclose(variances, [0.25, 4.0, 1.0], rtol=0.12)
    assert not np.any(log_ratio)


def test_change_bound_of_logistic_regression_holds(rng):
    """For every row, at near and far pairs of positions; and it is tight: some pair comes within a factor of two."""
    model = logistic_regression(2)
    rows = {"x": rng.normal(size=(300, 2)) * 3, "y": rng.integers(0, 2, size=300).astype(float)}
    largest = jnp.max(model.change_bound.row_statistic(rows))
    tightness = []
    for scale in (1e-3, 0.1, 1.0, 30.0):
        for _ in range(25):
            here = {"beta": rng.normal(size=3) * scale}
            there = {"beta": here["beta"] + rng.normal(size=3) * scale}
            change = np.abs(model.log_likelihood(there, rows) - model.log_likelihood(here, rows)).max()
            bound = float(model.change_bound.bound(largest, here, there))
            assert change <= bound * (1 + 1e-12)
            tightness.append(change / bound)
    assert max(tightness) > 0.5
