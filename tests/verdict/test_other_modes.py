"""The line about other modes: found where a fit has left one out, silent where there is none."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.posterior.modes.found import Mode, Modes, nats_left_out
from coreset_mcmc.results.left_out import kl_where_draws_are
from coreset_mcmc.verdict import BAD, CARE, GOOD
from coreset_mcmc.verdict.other_modes import NAME, judged
from tests.helpers.several_modes import clusters, factors

METHOD = cm.LeastSquares(num_draws=80, num_chains=2)
SETTINGS = {"coreset_size": 30, "draws": 60, "tune": 10, "chains": 2, "random_seed": 4, "progressbar": False}
STARTS = {"theta": np.zeros((1, 1))}


def other_modes(made):
    findings = made.trust(num_coresets=1, sensitivity=False).findings
    return next(finding for finding in findings if finding.name == NAME)


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, data, method=METHOD, **SETTINGS)


@pytest.mark.full
def test_a_fit_that_was_not_allowed_to_look_is_condemned():
    """The broken twin: a model that claims to be concave keeps its fit in the lesser cluster, hundreds of sd away."""
    model, data = clusters(np.random.default_rng(0))
    blind = fit(replace(model, log_concave=True), data)
    assert abs(float(blind.posterior["centre"].mean()) - 50.0) < 1.0
    assert blind.kl_estimate < 0.1
    found = other_modes(replace(blind, model=model))
    assert found.level == BAD
    assert found.value > 0.999
    assert "centre = " in found.text
    assert "exact()" in found.remedy


@pytest.mark.full
def test_a_mode_of_some_mass_calls_for_care_and_so_does_an_unknown_sign():
    found = other_modes(fit(*factors(np.random.default_rng(0))))
    assert found.level == CARE
    assert 0.1 < found.value < 0.5
    made = fit(*factors(np.random.default_rng(0), prior_mean=0.0))
    found = other_modes(made)
    assert (found.level, found.value) == (CARE, 0.0)
    assert "harmless for whatever is the same" in found.text
    assert other_modes(made.exact(draws=20, tune=5, chains=2, progressbar=False)).level == CARE


@pytest.mark.full
def test_what_is_left_out_is_part_of_the_estimate():
    """KL(one mode || all) is -log of its share; what the draws themselves show is next to nothing."""
    made = fit(*factors(np.random.default_rng(0)))
    share = made.settings["other_modes"]
    assert 0.1 < share < 0.5
    assert made.kl_estimate == pytest.approx(-np.log1p(-share), rel=0.1)
    assert kl_where_draws_are(made) < 0.01
    judged = made.trust(num_coresets=2, sensitivity=True)
    assert judged.kl_estimate > 0.1
    assert judged.size_sensitivity < 0.1
    assert judged.findings[0].value < 0.01


def test_nats_of_what_is_left_out():
    assert nats_left_out(0.0) == 0.0
    assert nats_left_out(0.75) == pytest.approx(np.log(4.0))
    assert 20.0 < nats_left_out(1.0) < np.inf
    assert np.isnan(nats_left_out(np.nan))


def test_levels():
    def modes(*evidences):
        found = [Mode(np.array([20.0 * number]), own, np.eye(1), False, None) for number, own in enumerate(evidences)]
        return Modes(tuple(found), (), 1, False, np.zeros(1), 2, 1_000, 0)

    here = np.random.default_rng(0).normal(size=(50, 1))

    def level(*evidences):
        return judged(modes(*evidences), here, STARTS).level

    assert level(0.0) == GOOD
    assert level(0.0, -8.0) == GOOD
    assert level(0.0, -6.0) == CARE
    assert level(0.0, -3.0) == CARE
    assert level(0.0, 0.1) == BAD
    assert level(0.0, math.nan) == BAD
    assert level(0.0, math.inf) == BAD
    labels = modes(0.0)._replace(symmetries=("components 0 and 1",), num_copies=2)
    assert judged(labels, here, STARTS).level == GOOD
    assert judged(labels._replace(changes_signs=True), here, STARTS).level == CARE
    nothing = Modes((), (), 1, False, np.zeros(1), 0, 1_000, 0)
    assert judged(nothing, here, STARTS).level == GOOD
    elsewhere = judged(nothing._replace(start=np.full(1, 9.0)), here, STARTS)
    assert elsewhere.level == BAD
    assert math.isnan(elsewhere.value)
