"""Every method through the front door: results, refusals that name what would work, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.methods.registry import METHODS as REGISTERED
from coreset_mcmc.methods.registry import methods_that_work
from coreset_mcmc.methods.tuned_sampling import NUM_TUNING
from tests.helpers.catalogue import METHODS
from tests.helpers.problems import logistic_data

ONE_OF_EACH_KIND = {"coreset-mcmc", "laplace", "least-squares", "nuts", "sgld", "uniform"}
"""What ``fit`` does with the others is the same, and each is a program of its own to compile."""
ONE_OF_EACH_DISCRETE_KIND = {"austerity-mh", "coreset-mcmc", "least-squares", "uniform"}
ALL = pytest.mark.parametrize(
    "entry",
    [entry if str(entry) in ONE_OF_EACH_KIND else pytest.param(entry, marks=pytest.mark.slow) for entry in METHODS],
    ids=str,
)
SETTINGS = {"coreset_size": 20, "draws": 30, "tune": 10, "chains": 2, "random_seed": 1, "progressbar": False}
SPARSE = cm.models.sparse_regression(3)


def quiet_fit(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(*arguments, **{**SETTINGS, **options})


def sparse_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    return {"x": x, "y": x @ np.array([0.0, 2.0, 2.0]) + rng.normal(size=200)}


@pytest.mark.full
@ALL
def test_fit_returns_the_same_kind_of_result_for_every_method(entry, tmp_path):
    fit = quiet_fit(cm.models.logistic_regression(2), logistic_data(), method=entry.make(1.0))
    beta = fit.posterior["beta"]
    assert beta.shape == (2, 30, 3)
    assert np.isfinite(beta.to_numpy()).all()
    assert {"lp", "acceptance_rate", "diverging", "n_steps"} <= set(fit.tree["sample_stats"].data_vars)
    assert fit.sampling.num_steps == (30 + NUM_TUNING if entry.name == "least-squares" else 40)
    assert fit.sampling.num_evaluations > 0
    assert fit.settings["method"] == entry.make(1.0).name
    assert fit.has_coreset == ("coreset" in fit.tree)
    assert list(fit.summary().index) == ["beta[0]", "beta[1]", "beta[2]"]
    loaded = cm.load(fit.save(tmp_path / "fit.nc"))
    assert np.array_equal(loaded.posterior["beta"], beta)
    assert loaded.has_coreset == fit.has_coreset
    assert repr(loaded) == repr(fit)


@pytest.mark.full
def test_a_method_without_a_coreset_says_so():
    fit = quiet_fit(cm.models.logistic_regression(2), logistic_data(), method=cm.Laplace())
    with pytest.raises(cm.InputError, match="laplace, which has no coreset"):
        _ = fit.coreset
    assert np.isnan(fit.kl_estimate)


def is_choosy(method) -> bool:
    return method.needs.gradient or method.needs.continuous


@pytest.mark.parametrize("entry", [entry for entry in METHODS if is_choosy(entry.make(1.0))], ids=str)
def test_the_impossible_is_refused_with_what_would_work(entry):
    """A discrete model: methods that differentiate refuse it and name those that do not; those run."""
    method = entry.make(1.0)
    with pytest.raises(cm.InputError, match=r"Methods that would work: .*coreset-mcmc") as error:
        quiet_fit(SPARSE, sparse_data(), method=method)
    assert entry.name not in str(error.value).split("would work:")[1]


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        name if name in ONE_OF_EACH_DISCRETE_KIND else pytest.param(name, marks=pytest.mark.slow)
        for name in methods_that_work(SPARSE, SPARSE.initial_position)
    ],
)
def test_methods_said_to_work_on_a_discrete_model_do(name):
    entry = next(entry for entry in METHODS if entry.name == name)
    method = entry.make(1.0)
    if hasattr(method, "proposal"):
        method = REGISTERED[name]()  # finds a proposal that moves the indicators
    data = sparse_data()
    fit = quiet_fit(SPARSE, data, method=method, initvals=cm.models.least_squares_start(data))
    gamma = fit.posterior["gamma"].to_numpy()
    assert set(np.unique(gamma)) <= {0, 1}
    assert gamma[..., 1:].mean() > 0.9, "coefficients of 2 with noise 1 leave no doubt"


@pytest.mark.full
def test_defaults_work_on_the_discrete_model():
    """No method and no kernel named: Gibbs moves the chains, and the active coefficients are found."""
    fit = quiet_fit(SPARSE, sparse_data(), draws=200)
    assert np.allclose(fit.posterior["gamma"].mean(("chain", "draw"))[1:], 1.0)


def test_a_bound_that_the_model_does_not_give_is_refused():
    with pytest.raises(cm.InputError, match="a bound on the change"):
        quiet_fit(
            cm.models.poisson_regression(2),
            {"x": np.ones((50, 2)), "y": np.ones(50)},
            method=cm.ConfidenceMH(bound="model"),
        )
