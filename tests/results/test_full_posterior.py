"""From a coreset posterior to the full one: weights, second stages, and coresets that grow."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.gaussian_location import coreset_posterior

pytestmark = pytest.mark.full

DIM, SIZE = 2, 400
SLICE = cm.kernels.HitAndRunSlice()


@pytest.fixture(scope="module")
def problem():
    """Rows, and the moments of their posterior."""
    data = np.random.default_rng(3).normal(size=(SIZE, DIM))
    with jax.enable_x64(True):
        mean, variance = coreset_posterior(data, np.ones(SIZE))
    return data, np.asarray(mean), float(variance) * np.eye(DIM)


@pytest.fixture(scope="module")
def poor(problem):
    """A uniform coreset of 150 rows, about a nat away from the full posterior."""
    data, mean, covariance = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            cm.models.gaussian_location(DIM), data, coreset_size=150, method=cm.Uniform(), kernel=SLICE, draws=1_500,
            tune=200, chains=2, random_seed=5, progressbar=False,
        )  # fmt: skip
    assert two_moment_kl(draws_of(fitted), mean, covariance) > 0.5
    return fitted


def draws_of(fitted):
    return fitted.posterior["theta"].to_numpy()


@pytest.mark.statistical
def test_exact_draws_have_the_full_posterior_whatever_the_coreset(problem, poor):
    """8 times the expected two-moment KL of as many effective draws; false alarm below 1e-4."""
    _, mean, covariance = problem
    exact = poor.exact(draws=2_000, chains=4, random_seed=1, progressbar=False)
    draws = draws_of(exact)
    assert draws.shape == (4, 2_000, DIM)
    assert two_moment_kl(draws, mean, covariance) < 8 * two_moment_kl_floor(DIM, min_bulk_ess(draws))
    assert 0.02 < exact.settings["acceptance_rate"] < 0.95
    assert exact.law is Law.EXACT
    assert "full posterior, exact" in repr(exact)


@pytest.mark.statistical
def test_weights_bring_the_draws_closer(problem, poor):
    _, mean, covariance = problem
    corrected = poor.reweight()
    before, after = (two_moment_kl(draws_of(fitted), mean, covariance) for fitted in (poor, corrected))
    assert after < 0.1 * before
    assert 0 < corrected.settings["pareto_k"] < 0.7
    assert 10 < corrected.settings["effective_draws"] < 3_000


def test_hopeless_weights_are_told(problem):
    data, _, _ = problem
    with pytest.warns(UserWarning, match="estimated KL"):
        fitted = cm.fit(
            cm.models.gaussian_location(DIM), data, coreset_size=4, method=cm.Uniform(), kernel=SLICE, draws=500,
            tune=100, chains=1, random_seed=5, progressbar=False,
        )  # fmt: skip
    with pytest.warns(UserWarning, match=r"fit\.exact"):
        fitted.reweight()


def test_rare_acceptance_is_told(poor, monkeypatch):
    monkeypatch.setattr("coreset_mcmc.results.full_posterior.LOW_ACCEPTANCE", 1.0)
    with pytest.warns(UserWarning, match="accepted on all rows"):
        poor.exact(draws=20, tune=0, chains=4, progressbar=False)


def test_corrected_fits_save_and_load(poor, tmp_path):
    corrected = poor.reweight(draws=100)
    loaded = cm.load(corrected.save(tmp_path / "fit.nc"))
    assert loaded.law is Law.REWEIGHTED
    assert loaded.settings == corrected.settings
    np.testing.assert_array_equal(draws_of(loaded), draws_of(corrected))


def test_methods_on_all_rows_need_no_correction(problem):
    data, _, _ = problem
    laws = [(cm.NUTS(), "They need no correction"), (cm.Laplace(), "Nothing here can correct them")]
    for method, words in laws:
        fitted = cm.fit(cm.models.gaussian_location(DIM), data, method=method, draws=50, tune=0, progressbar=False)
        for correct in (fitted.reweight, fitted.exact):
            with pytest.raises(InputError, match=words):
                correct()


class TestAutomaticSize:
    def fit(self, **options):
        rng = np.random.default_rng(0)
        data = {"x": rng.normal(size=(2_000, 3)), "y": rng.integers(0, 2, size=2_000).astype(float)}
        common = {"draws": 100, "tune": 50, "chains": 2, "random_seed": 1, "progressbar": False}
        return cm.fit(cm.models.logistic_regression(3), data, coreset_size="auto", **common, **options)

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_stops_at_the_first_size_that_will_do(self):
        fitted = self.fit()
        assert fitted.coreset.size == 100
        assert fitted.kl_estimate < 0.05
        assert fitted.settings["coreset_size"].startswith("auto: 100 rows gave")
        assert "at or below the target of 0.05" in fitted.settings["coreset_size"]

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_grows_and_says_when_it_did_not_get_there(self):
        fitted = self.fit(kl_target=1e-12, method=cm.Uniform(), kernel=SLICE)
        assert fitted.coreset.size == 1_000
        assert "100 rows gave" in fitted.settings["coreset_size"]
        assert "still above the target" in fitted.settings["coreset_size"]

    def test_refuses_what_has_no_size(self):
        with pytest.raises(InputError, match="without a coreset"):
            self.fit(method=cm.NUTS())
        with pytest.raises(InputError, match="kl_target"):
            self.fit(kl_target=0.0)
