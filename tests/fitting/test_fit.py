"""The front door, from what a user passes to what a user gets."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import arviz_stats
import jax
import numpy as np
import pandas as pd
import pytest
import xarray

import coreset_mcmc as cm
import coreset_mcmc.driver.run as driver
from coreset_mcmc.methods.sizes import default_rows_beside_term, rows_to_start_from
from tests.helpers.problems import logistic_data, small_method

QUICK = {"coreset_size": 30, "draws": 200, "tune": 50, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def fitted():
    """The default path on small data: pilot, epochs, sampling."""
    return cm.fit(
        cm.models.logistic_regression(2),
        logistic_data(size=3_000),
        coreset_size=100,
        draws=500,
        chains=4,
        random_seed=1,
        progressbar=False,
        coords={"coefficient": ["intercept", "a", "b"]},
    )


def quick_fit(**options):
    settings = {**QUICK, "method": small_method(num_iterations=30), **options}
    model = settings.pop("model", cm.models.logistic_regression(2))
    data = settings.pop("data", logistic_data())
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, data, **settings)


def test_defaults_give_the_posterior(fitted):
    """The coreset posterior is close to the full one, found by Newton's method, in units of its own spread."""
    data = logistic_data(size=3_000)
    model = cm.models.logistic_regression(2)

    def log_posterior(beta):
        position = {"beta": beta}
        return model.log_prior(position) + jax.numpy.sum(model.log_likelihood(position, data))

    beta = jax.numpy.zeros(3)
    for _ in range(20):
        beta = beta - jax.numpy.linalg.solve(jax.hessian(log_posterior)(beta), jax.grad(log_posterior)(beta))
    covariance = np.linalg.inv(-np.asarray(jax.hessian(log_posterior)(beta)))
    draws = fitted.posterior["beta"].to_numpy().reshape(-1, 3)
    assert fitted.training.reason == "converged"
    assert fitted.kl_estimate < 0.3
    assert cm.metrics.two_moment_kl(draws, np.asarray(beta), covariance) < 1.0


def test_posterior_is_a_tree_that_arviz_summarises(fitted):
    assert isinstance(fitted.tree, xarray.DataTree)
    summary = arviz_stats.summary(fitted.tree)
    assert list(summary.index) == ["beta[intercept]", "beta[a]", "beta[b]"]
    assert dict(fitted.posterior.sizes) == {"chain": 4, "draw": 500, "coefficient": 3}
    assert set(fitted.tree["sample_stats"].data_vars) == {"lp", "acceptance_rate", "diverging", "n_steps"}
    assert summary["r_hat"].max() < 1.05


def test_coreset_is_portable(fitted):
    frame = fitted.coreset.to_frame()
    assert list(frame.columns) == ["row", "weight", "x[0]", "x[1]", "y"]
    data = logistic_data(size=3_000)
    np.testing.assert_array_equal(frame["y"], data["y"][fitted.coreset.indices])
    np.testing.assert_array_equal(frame[["x[0]", "x[1]"]], data["x"][fitted.coreset.indices])
    assert (fitted.coreset.weights >= 0).all()
    assert len(set(fitted.coreset.indices)) == fitted.coreset.size == 100
    assert 1 <= fitted.coreset.effective_size <= 100
    original = pd.DataFrame({"y": data["y"]}, index=[f"row {n}" for n in range(3_000)])
    assert list(fitted.coreset.to_frame(original).index) == [f"row {n}" for n in fitted.coreset.indices]


def test_save_and_load(fitted, tmp_path):
    again = cm.load(fitted.save(tmp_path / "new folder" / "fit.nc"))
    xarray.testing.assert_equal(again.tree, fitted.tree)
    np.testing.assert_array_equal(again.coreset.weights, fitted.coreset.weights)
    pd.testing.assert_frame_equal(again.coreset.to_frame(), fitted.coreset.to_frame())
    assert (again.pilot, again.training, again.sampling) == (fitted.pilot, fitted.training, fitted.sampling)
    assert again.settings == fitted.settings
    assert repr(again) == repr(fitted)


def test_load_refuses_other_files(tmp_path):
    (tmp_path / "text.nc").write_text("not a netCDF file")
    with pytest.raises(cm.InputError, match=r"a file that Fit\.save wrote"):
        cm.load(tmp_path / "text.nc")
    with pytest.raises(cm.InputError, match=r"a file that Fit\.save wrote"):
        cm.load(tmp_path / "missing.nc")


@pytest.mark.full
def test_same_seed_same_bits_and_none_is_remembered():
    first, second = quick_fit(), quick_fit()
    np.testing.assert_array_equal(first.posterior["beta"], second.posterior["beta"])
    fresh = quick_fit(random_seed=None)
    repeated = quick_fit(random_seed=fresh.settings["random_seed"])
    np.testing.assert_array_equal(fresh.coreset.weights, repeated.coreset.weights)


@pytest.mark.full
def test_works_in_single_precision_sessions(single_precision):
    fit = quick_fit()
    assert fit.coreset.weights.dtype == np.float64
    assert jax.numpy.ones(1).dtype == np.float32


@pytest.mark.full
def test_data_frame_and_array_positions():
    """A model in plain JAX on a DataFrame, with a bare array as position."""
    frame = pd.DataFrame({"value": np.random.default_rng(0).normal(2.0, 1.0, size=300), "unused": range(300)})
    model = cm.Model(
        lambda theta: -0.5 * jax.numpy.sum(theta**2),
        lambda theta, rows: -0.5 * (rows["value"] - theta[0]) ** 2,
        initial_position=np.zeros(1),
    )
    fit = quick_fit(model=model, data=frame, method=None, draws=300)
    assert list(fit.posterior.data_vars) == ["theta"]
    assert fit.posterior["theta"].mean() == pytest.approx(frame["value"].mean() * 300 / 301, abs=0.1)


@pytest.mark.full
def test_discrete_positions_with_a_kernel_of_the_user(key):
    """A position with an integer part: the default kernel refuses it, a kernel that can move it is used."""

    class FlipOrKeep:
        has_data_dependent_loops = False
        caches_gradient = False

        def check(self, position, target):
            pass

        def init(self, position, target):
            return cm.kernels.KernelState(position, target.log_density(position))

        def step(self, key, state, target):
            proposal = {"group": 1 - state.position["group"]}
            log_density = target.log_density(proposal)
            accepted = jax.numpy.log(jax.random.uniform(key)) < log_density - state.log_density
            moved = cm.kernels.KernelState(proposal, log_density)
            state = jax.tree.map(lambda new, old: jax.numpy.where(accepted, new, old), moved, state)
            info = cm.kernels.KernelInfo(
                acceptance_rate=accepted * 1.0, num_evaluations=jax.numpy.int32(1), diverging=jax.numpy.array(False)
            )
            return state, info

    jax.tree_util.register_pytree_node(FlipOrKeep, lambda _: ((), None), lambda *_: FlipOrKeep())
    model = cm.Model(
        lambda position: 0.0 * position["group"],
        lambda position, rows: -0.5 * (rows - 0.01 * position["group"]) ** 2,
        initial_position={"group": 0},
        differentiable=False,
    )
    data = np.random.default_rng(0).normal(size=200)
    with pytest.raises(cm.InputError, match=r"position\['group'\] of type int.*Use kernel=cm.kernels.MixedSlice"):
        quick_fit(model=model, data=data, method=small_method(kernel=cm.kernels.HitAndRunSlice()))
    fit = quick_fit(model=model, data=data, method=small_method(kernel=FlipOrKeep(), num_iterations=20))
    groups = fit.posterior["group"]
    assert groups.dtype.kind == "i"
    assert set(np.unique(groups)) == {0, 1}


@pytest.mark.full
def test_more_sampling_chains_than_training_chains():
    fit = quick_fit(chains=3)
    draws = fit.posterior["beta"].to_numpy()
    assert draws.shape[0] == 3
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.full
def test_user_kernel_replaces_the_pilot():
    """Uniform weights move chains with a kernel; without one they get a pilot run."""
    shaped = quick_fit(method=cm.Uniform())
    assert shaped.pilot.num_evaluations > 0
    given = quick_fit(method=cm.Uniform(), kernel=cm.kernels.UnivariateSlice())
    assert given.pilot.num_evaluations == 0
    assert given.pilot.reason == "not needed"


@pytest.mark.full
def test_interrupting_training_goes_on_to_sampling(monkeypatch):
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)

    def interrupt(event):
        if event.num_steps == 5:
            os.kill(os.getpid(), signal.SIGINT)

    fit = quick_fit(method=small_method(num_iterations=10_000), callbacks=[interrupt])
    assert fit.is_interrupted
    assert fit.training.num_steps == 5
    assert fit.posterior.sizes["draw"] == QUICK["draws"]


@pytest.mark.full
def test_warnings_tell_what_to_do():
    with pytest.warns(UserWarning, match=r"smallest bulk ESS is \d+, below 100 per chain.*Increase draws"):
        cm.fit(
            cm.models.logistic_regression(2),
            logistic_data(),
            **{**QUICK, "draws": 50, "method": small_method(num_iterations=10, kernel=cm.kernels.RandomWalk(1e-3))},
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coreset_size": 401}, r"coreset_size: got 401; expected at most the 400 rows"),
        ({"coreset_size": 0}, r"coreset_size: got 0; expected a whole number of at least 1"),
        ({"coreset_size": 2.5}, r"coreset_size: got 2.5; expected a whole number of at least 1"),
        ({"coreset_size": True}, r"coreset_size: got True; expected a whole number of at least 1"),
        ({"draws": 0}, r"draws: got 0"),
        ({"tune": -1}, r"tune: got -1"),
        ({"chains": 0}, r"chains: got 0"),
        ({"data": {"x": np.zeros((5, 2)), "y": np.full(5, 2.0)}}, r"response y: got 5 rows outside.*0 or 1"),
        ({"data": {"x": np.full((5, 2), np.nan), "y": np.zeros(5)}}, r"NaN or infinite values in 5 of 5 rows"),
        ({"initvals": {"beta": np.full(3, np.inf)}}, r"initial position.*NaN or infinite"),
        ({"initvals": {"gamma": np.zeros(3)}}, r"log_prior\(position\): got KeyError"),
        ({"model": "a model"}, r"model: got str; expected a Model"),
        ({"method": small_method(subsample_size=500)}, r"subsample_size: got 500; expected at most the 400 rows"),
    ],
)
def test_bad_input_is_refused_before_any_work(options, message):
    settings = {**QUICK, "coreset_size": 4, "method": small_method(num_iterations=1), **options}
    model = settings.pop("model", cm.models.logistic_regression(2))
    with pytest.raises(cm.InputError, match=message):
        cm.fit(model, settings.pop("data", logistic_data()), **settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_chains": 1}, r"num_chains: got 1; expected a whole number of at least 2.*covariance over chains"),
        ({"num_iterations": 0}, r"num_iterations: got 0"),
        ({"delay": 0}, r"delay: got 0"),
        ({"burn_in": -1}, r"burn_in: got -1"),
        ({"subsample_size": 0}, r"subsample_size: got 0"),
        ({"optimizer": "adam"}, r"optimizer: got 'adam'.*Leave it out for Hot DoG"),
    ],
)
def test_bad_method_settings_are_refused_at_once(options, message):
    with pytest.raises(cm.InputError, match=message):
        cm.CoresetMCMC(**options)


def test_more_parameters_get_more_rows_by_default():
    """What a quadratic in them calls for, never too many to train; two for each beside a Gaussian term."""
    assert [rows_to_start_from(count) for count in (3, 24, 40, 500)] == [100, 486, 1_290, 5_000]
    assert [default_rows_beside_term(count) for count in (3, 24, 300, 5_000)] == [500, 500, 600, 1_500]


@pytest.mark.parametrize(("num_parameters", "rows"), [(12, 500), (43, 1_484), (44, 500)])
def test_rows_stand_alone_where_ridges_are_likely(num_parameters, rows):
    """Up to 43 parameters, unless the log-likelihood is known to be concave or a term is asked for."""
    position = {"theta": np.zeros(num_parameters)}
    model = cm.Model(lambda at: 0.0, lambda at, batch: batch, initial_position=position)
    assert cm.LeastSquares().default_rows(model, position) == rows
    assert cm.LeastSquares(gaussian_term=True).default_rows(model, position) == 500
    assert cm.LeastSquares().default_rows(replace(model, log_concave=True), position) == 500
