"""Log-likelihoods in NumPy: the same numbers as in JAX, the user's own exceptions, and what runs with them."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import coreset_mcmc as cm
from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.models.host import HostFunction, Packing
from coreset_mcmc.posterior.target import CoresetTarget

pytestmark = pytest.mark.full

RNG = np.random.default_rng(0)
DATA = {"x": RNG.normal(size=300), "group": RNG.integers(2, size=300)}
DATA["y"] = RNG.normal(1.0 + 2.0 * DATA["x"], 0.7)
START = {"beta": np.array([0.5, 1.0]), "sigma": np.array(1.0)}


def log_prior(position):
    if position["sigma"] <= 0:
        return -np.inf
    return stats.norm.logpdf(position["beta"], 0, 5).sum() - position["sigma"]


def log_likelihood(position, rows):
    mean = position["beta"][0] + position["beta"][1] * rows["x"]
    return stats.norm.logpdf(rows["y"], mean, position["sigma"])


def many_positions(positions, rows):
    """The same, for positions with a leading axis."""
    mean = positions["beta"][:, :1] + positions["beta"][:, 1:] * rows["x"]
    return stats.norm.logpdf(rows["y"], mean, positions["sigma"][:, None])


def many_priors(positions):
    return stats.norm.logpdf(positions["beta"], 0, 5).sum(axis=1) - positions["sigma"]


MODEL = cm.Model.from_callable(log_prior, log_likelihood, START)
QUICK = {"coreset_size": 20, "draws": 15, "tune": 2, "chains": 2, "random_seed": 0, "progressbar": False}
SMALL = cm.LeastSquares(num_draws=20, num_chains=2, num_rounds=1, tolerance=1e9)


def quick_fit(model=MODEL, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, DATA, **{**QUICK, **options})


def batch():
    return jax.tree.map(jnp.asarray, DATA)


@pytest.mark.parametrize("vectorized", [False, True])
def test_compiled_values_are_those_of_python_to_the_last_bit(vectorized):
    """Also under nested vmap, and with JAX's own switch for 64 bits off on the thread that calls back."""
    functions = (many_priors, many_positions) if vectorized else (log_prior, log_likelihood)
    model = cm.Model.from_callable(*functions, START, vectorized=vectorized)
    positions = {"beta": jnp.asarray(RNG.normal(size=(2, 3, 2))), "sigma": jnp.asarray(RNG.uniform(0.5, 2, (2, 3)))}
    values = jax.jit(jax.vmap(jax.vmap(model.log_likelihood, (0, None)), (0, None)))(positions, batch())
    priors = jax.jit(jax.vmap(jax.vmap(model.log_prior)))(positions)
    assert values.dtype == np.float64
    for place in np.ndindex(2, 3):
        position = jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place]), positions)
        np.testing.assert_array_equal(values[place], log_likelihood(position, DATA))
        np.testing.assert_allclose(priors[place], log_prior(position), rtol=1e-15)


def test_batches_of_its_own_for_each_position():
    """Methods that draw a subsample for each chain vectorise over rows, too."""
    rows = jax.tree.map(lambda leaf: leaf.reshape(3, 100), batch())
    positions = {"beta": jnp.asarray(RNG.normal(size=(3, 2))), "sigma": jnp.ones(3)}
    values = jax.jit(jax.vmap(MODEL.log_likelihood))(positions, rows)
    for k in range(3):
        expected = log_likelihood(*jax.tree.map(lambda leaf, k=k: np.asarray(leaf[k]), (positions, rows)))
        np.testing.assert_array_equal(values[k], expected)


def test_packing_keeps_every_type():
    tree = {
        "double": jnp.asarray([[0.1, np.inf], [np.nan, -0.0]]),
        "single": jnp.asarray([1.5, 2.5], jnp.float32),
        "long": jnp.asarray([2**40, -1]),
        "short": jnp.asarray([-3, 4], jnp.int8),
        "flag": jnp.asarray([True, False]),
    }
    packing = Packing.of(tree, 1)
    again = packing.unpacked(np.asarray(packing.packed(tree)))
    for name, leaf in tree.items():
        assert again[name].dtype == leaf.dtype
        np.testing.assert_array_equal(again[name], leaf)


@pytest.fixture(scope="module")
def fitted():
    with jax.enable_x64(True):
        return quick_fit(method=SMALL)


def test_training_and_sampling_work(fitted):
    """Without a kernel: moves along ellipses and lines, shaped by the training."""
    assert fitted.posterior["beta"].shape == (2, 15, 2)
    assert np.isfinite(fitted.kl_estimate)
    assert len(np.unique(fitted.posterior["sigma"])) == 30


@pytest.mark.parametrize("kernel", [cm.kernels.RandomWalk(0.05), cm.kernels.UnivariateSlice()], ids=["walk", "slice"])
def test_every_kernel_without_gradients_moves_a_black_box(kernel):
    target = CoresetTarget(jax.tree.map(lambda leaf: leaf[:20], batch()), jnp.ones(20), MODEL)
    state = kernel.init(jax.tree.map(jnp.asarray, START), target)
    moved, info = jax.jit(kernel.step)(jax.random.key(1), state, target)
    expected = log_prior(moved.position) + log_likelihood(moved.position, jax.tree.map(lambda x: x[:20], DATA)).sum()
    assert moved.log_density == pytest.approx(float(expected), rel=1e-12)
    assert int(info.num_evaluations) >= 1


def test_gradients_are_refused_by_name():
    with pytest.raises(cm.InputError, match=r"gradients, which the model declares not to have.*least-squares"):
        quick_fit(cm.Model.from_callable(log_prior, log_likelihood, START, smooth=False), method=cm.NUTS())


def test_an_exception_while_running_is_the_users_own(caplog):
    calls = []

    def fails_later(position, rows):
        calls.append(1)
        if len(calls) > 30:
            raise ZeroDivisionError("trouble of the user")
        return log_likelihood(position, rows)

    with pytest.raises(ZeroDivisionError, match=r"^trouble of the user$") as caught:
        quick_fit(cm.Model.from_callable(log_prior, fails_later, START), method=SMALL)
    assert caught.traceback[-1].name == "fails_later"
    assert caplog.text == ""


def test_each_of_two_threads_sees_its_own_exception(caplog):
    """Both functions are being called when either of them raises."""
    both_run = threading.Barrier(2, timeout=60)

    def failing(number):
        def function(position):
            both_run.wait()
            raise ZeroDivisionError(f"trouble of thread {number}")

        return jax.jit(HostFunction(function, False, "log_prior(position)"))

    @entry_point
    def run(function):
        return jax.block_until_ready(function({"theta": jnp.zeros(2)}))

    with ThreadPoolExecutor(2) as threads:
        errors = [thread.exception() for thread in [threads.submit(run, failing(number)) for number in range(2)]]
    assert [str(error) for error in errors] == ["trouble of thread 0", "trouble of thread 1"]
    assert {type(error) for error in errors} == {ZeroDivisionError}
    assert caplog.text == ""


def test_other_exceptions_of_jax_pass_through_the_entry_point():
    @entry_point
    def run():
        assert jnp.zeros(1).dtype == jnp.float64
        return jnp.zeros(2) + jnp.zeros(3)

    with pytest.raises(TypeError, match="incompatible shapes"):
        run()


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_a_special_start_hides_no_dependence(slope):
    def centred(position, rows):
        return log_likelihood(position, {**rows, "x": rows["x"] - rows["x"].mean()})

    start = {**START, "beta": np.array([0.5, slope])}
    with pytest.raises(cm.InputError, match="other rows"):
        quick_fit(cm.Model.from_callable(log_prior, centred, start))


def test_nothing_is_called_outside_the_support():
    """A position near the start is tried only where the prior allows it."""

    def only_here(position):
        return 0.0 if np.all(position["beta"] == START["beta"]) else -np.inf

    def raises_elsewhere(position, rows):
        if np.any(position["beta"] != START["beta"]):
            raise ArithmeticError
        return log_likelihood(position, rows)

    model = cm.Model.from_callable(only_here, raises_elsewhere, START)
    assert model.bind(DATA).name == "black box"


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda p, r: log_likelihood(p, r).sum(), cm.InputError, r"got shape \(\); expected shape \(1,\), one value"),
        (lambda p, r: log_likelihood(p, r)[:, None], cm.InputError, r"got shape \(1, 1\)"),
        (lambda p, r: "text", cm.InputError, r"got str .*expected numbers"),
        (lambda p, r: log_likelihood(p, {**r, "x": r["x"] - r["x"].mean()}), cm.InputError, r"other rows.*centring"),
        (lambda p, r: log_likelihood(p, {**r, "x": np.cumsum(r["x"])}), cm.InputError, r"order of the rows"),
        (lambda p, r: r["z"], KeyError, "z"),
    ],
)
def test_mistakes_show_before_anything_is_compiled(function, error, message):
    with pytest.raises(error, match=message):
        quick_fit(cm.Model.from_callable(log_prior, function, START))
    with pytest.raises(cm.InputError, match=r"log_prior\(position\): got shape \(2,\); expected shape \(\)"):
        quick_fit(cm.Model.from_callable(lambda p: p["beta"], log_likelihood, START))


def test_leave_one_out_of_a_black_box(fitted):
    elpd = fitted.loo(reweight=False)
    assert elpd.elpd_i.shape == (300,)
    assert np.isfinite(elpd.elpd)
