"""What draws are draws of, where the estimated distance is infinite or could not be computed."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.law import Law
from coreset_mcmc.results import full_posterior
from coreset_mcmc.verdict import BAD

ROWS = np.linspace(-1.0, 1.0, 50)
"""Every row must lie above theta, so the full posterior is a standard normal below -1."""
MODEL = cm.Model(
    lambda theta: -0.5 * jnp.sum(theta**2),
    lambda theta, rows: jnp.where(rows > theta[0], -theta[0] * 0.0, -jnp.inf),
    initial_position=np.full(1, -2.0),
)


def fit(first_row, **options):
    """The coreset of the last rows, from ``first_row`` on, allows positions that the other rows forbid."""
    settings = {"draws": 500, "tune": 50, "chains": 4, "random_seed": 5, "progressbar": False, **options}
    selection = cm.selection.Given(np.arange(first_row, 50))
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kernel = cm.kernels.HitAndRunSlice()
        return cm.fit(MODEL, ROWS, selection=selection, method=cm.Uniform(), kernel=kernel, **settings)


@pytest.fixture(scope="module")
def wide():
    """Some draws, those above -1, are impossible under rows outside the coreset."""
    made = fit(40)
    assert not math.isfinite(made.kl_estimate)
    return made


@pytest.fixture(scope="module", params=[math.inf, math.nan])
def far(request, wide):
    return replace(wide, tree=wide.tree.copy(), kl_estimate=request.param)


def theta(fitted):
    return fitted.posterior["theta"].to_numpy()


def test_the_draws_are_those_of_the_coreset_whatever_the_estimate(far, tmp_path):
    assert far.law is Law.CORESET
    assert far.samples_coreset
    loaded = cm.load(far.save(tmp_path / "fit.nc"))
    assert loaded.law is Law.CORESET
    np.testing.assert_equal(loaded.kl_estimate, far.kl_estimate)


def test_the_header_is_strict_json(far):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    header = json.loads(far.tree.attrs["coreset_mcmc"], parse_constant=refuse)
    assert header["kl_estimate"] == ("inf" if far.kl_estimate > 0 else None)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Only .* were accepted:UserWarning")
def test_exact_draws_start_where_all_rows_allow(far):
    assert theta(far).max() > -1.0
    exact = far.exact(draws=50, tune=5, chains=4, progressbar=False)
    assert exact.law is Law.EXACT
    assert theta(exact).max() <= -1.0


@pytest.mark.full
def test_impossible_draws_have_no_weight(far):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        weighted = far.reweight()
    assert weighted.law is Law.REWEIGHTED
    assert theta(weighted).max() <= -1.0
    share = np.mean(theta(far) <= -1.0)
    assert weighted.settings["effective_draws"] == pytest.approx(share * theta(far).size)


@pytest.mark.full
def test_loo_leaves_impossible_draws_out(far):
    """All rows have likelihood one wherever they are possible, and so have new ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = far.loo()
    assert found.approx_posterior
    assert found.elpd == pytest.approx(0.0, abs=1e-9)


@pytest.mark.full
def test_the_verdict_says_why(far):
    judged = far.trust(num_coresets=1, sensitivity=False)
    assert judged.verdict == BAD
    assert judged.kl_estimate == math.inf
    assert "impossible" in judged.reason
    again = cm.Trust.from_dict(json.loads(json.dumps(judged.to_dict(), allow_nan=False)))
    np.testing.assert_equal(again, judged)
    assert again.kl_estimate == math.inf
    assert again.findings[0].value == math.inf
    assert math.isnan(again.rhat_across_coresets)


def test_draws_that_are_all_impossible_are_refused_in_true_words(wide, monkeypatch):
    monkeypatch.setattr(full_posterior, "MOST_TRIED", 30)
    names = wide.posterior.data_vars
    high = wide.tree.copy(deep=True)
    for name in names:
        high["posterior"][name] = high["posterior"][name] * 0.0
    lost = replace(wide, tree=high)
    for correct in (lost.exact, lost.reweight, lost.loo):
        with pytest.raises(InputError, match="all impossible under rows outside the coreset"):
            correct()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The (smallest|largest):UserWarning")
def test_an_infinite_estimate_is_told():
    with pytest.warns(UserWarning, match="impossible under rows that are not in the coreset"):
        cm.fit(
            MODEL, ROWS, selection=cm.selection.Given(np.arange(40, 50)), method=cm.Uniform(), draws=50, tune=0,
            kernel=cm.kernels.HitAndRunSlice(), random_seed=5, progressbar=False,
        )  # fmt: skip


def test_settings_belong_to_one_fit(wide):
    more = wide.with_settings({"note": -math.inf})
    assert "note" not in json.loads(wide.tree.attrs["coreset_mcmc"])["settings"]
    assert json.loads(more.tree.attrs["coreset_mcmc"])["settings"]["note"] == "-inf"


def test_infinite_settings_come_back_from_a_file(wide, tmp_path):
    settings = {"pareto_k": math.inf, "effective_draws": math.nan, "name": "inf", "nothing": None}
    again = cm.load(wide.with_settings(settings).save(tmp_path / "fit.nc"))
    np.testing.assert_equal({name: again.settings[name] for name in settings}, settings)
