"""What findings say: bounds that follow from the estimate, terms by their names, influence instead of weight."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.blocks import rows_of
from coreset_mcmc.results.influence import effective_number, influence_of
from coreset_mcmc.verdict import CARE, GOOD, rules
from coreset_mcmc.verdict.users_names import users_name


@pytest.mark.parametrize(("kl", "off"), [(0.0094, "0.14"), (0.1, "0.45"), (0.5, "1 of"), (2.0, "2 standard")])
def test_how_far_a_mean_may_be_off_follows_from_the_estimate(kl, off):
    """Equal Gaussians e standard deviations apart have a KL of e^2 / 2."""
    assert off in rules.distance(kl, 400).text


def claims(seed: int = 0) -> pd.DataFrame:
    """Exposures that differ by six orders of magnitude."""
    generator = np.random.default_rng(seed)
    exposure = 10 ** generator.uniform(-6, 0, 600)
    x = generator.normal(size=600)
    claim = generator.poisson(exposure * np.exp(0.5 + 0.3 * x))
    return pd.DataFrame({"claim": claim, "x": x, "exposure": exposure})


def with_weights(weights: np.ndarray, rows: np.ndarray) -> cm.Fit:
    model = cm.from_formula("claim ~ x + offset(np.log(exposure))", claims(), family="poisson")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(
            model,
            selection=cm.selection.Given(rows, weights),
            method=cm.Uniform(cm.kernels.HitAndRunSlice()),
            draws=60,
            tune=60,
            chains=2,
            random_seed=1,
            progressbar=False,
        )


@pytest.mark.full
def test_a_heavy_row_of_tiny_exposure_decides_nothing():
    """Its weight is that of all others together, and its influence is that of a crumb."""
    frame = claims()
    rows = np.arange(600)
    weights = np.ones(600)
    tiny = int(np.argmin(np.where(frame["claim"] == 0, frame["exposure"], 1.0)))
    weights[tiny] = 90_000.0
    fit = with_weights(weights, rows)
    assert fit.coreset.effective_size < 1.1
    influence = influence_of(fit.model, fit.positions(), rows_of(fit.own_rows, "test"), fit.coreset)
    assert influence[tiny] < 0.5 * influence.max()
    judged = fit.trust(num_coresets=1, sensitivity=False, draws=60)
    finding = next(finding for finding in judged.findings if finding.name.startswith("Effective rows"))
    assert finding.level == GOOD
    assert finding.value == pytest.approx(effective_number(influence))


@pytest.mark.full
def test_a_heavy_row_that_decides_is_still_seen():
    frame = claims()
    largest = int(np.argmax(frame["claim"].to_numpy()))
    weights = np.full(600, 1e-6)
    weights[largest] = 50.0
    judged = with_weights(weights, np.arange(600)).trust(num_coresets=1, sensitivity=False, draws=60)
    finding = next(finding for finding in judged.findings if finding.name.startswith("Effective rows"))
    assert finding.level == CARE
    assert "a few heavy rows decide" in finding.text


def test_concentration():
    assert effective_number(np.ones(7)) == pytest.approx(7)
    assert effective_number(np.array([1.0, 0.0])) == 1.0
    assert effective_number(np.zeros(3)) == 0.0
    assert effective_number(np.array([np.inf, 1.0, 1.0])) == 1.0


@pytest.mark.full
def test_coordinates_have_the_names_of_terms():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"x": generator.normal(size=300), "g": np.resize(["a", "b", "c"], 300)})
    frame["y"] = frame["x"] + generator.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cm.fit(
            cm.from_formula("y ~ x + g", frame),
            coreset_size=60,
            method=cm.Uniform(cm.kernels.HitAndRunSlice()),
            draws=80,
            tune=60,
            chains=2,
            random_seed=1,
            progressbar=False,
        )
    assert [users_name(fit, f"coefficients[{place}]") for place in range(3)] == ["x", "g[b]", "g[c]"]
    assert users_name(fit, "log_sigma") == "sigma"
    assert users_name(fit, "nothing") == "nothing"
    judged = fit.trust(sensitivity=False, draws=80)
    text = next(finding.text for finding in judged.findings if finding.name.startswith("Agreement"))
    assert "coefficients" not in text
    assert math.isfinite(judged.largest_shift)
