"""Tables that a notebook shows: the facts, escaped, and the verdict in its colour."""

from __future__ import annotations

import re

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core import html
from coreset_mcmc.results.notebook import coreset_display


def test_a_coreset_shows_its_size_and_its_heaviest_rows():
    weights = np.array([1.0, 0.0, 7.0])
    coreset = cm.Coreset(np.array([4, 8, 15]), weights, 100, {"<y>": np.array([0.5, 1.5, 2.5])})
    shown = coreset._repr_html_()
    assert shown == coreset_display(coreset)
    assert "3 of 100, 2 of positive weight" in shown
    assert "&lt;y&gt;" in shown
    assert shown.index("15") < shown.index("0.5")


def test_a_model_says_what_it_has():
    shown = cm.models.logistic_regression(2)._repr_html_()
    assert "beta (3,)" in shown
    assert "no: pass them to cm.fit" in shown


@pytest.mark.parametrize("level", html.COLOURS)
def test_a_verdict_has_its_colour(level):
    finding = cm.Finding("Distance <KL>", 0.5, level, "a & b", "more")
    trust = cm.Trust(level, "because", "more rows", (finding,), "nothing", *[0.0] * 3, 1, *[0.0] * 5, 1)
    shown = trust._repr_html_()
    assert f'<strong style="color:{html.COLOURS[level]}">{level}</strong>' in shown
    assert "Distance &lt;KL&gt;" in shown
    assert "a &amp; b" in shown
    assert "KL: distance between two distributions, in nats" in str(trust)
    assert "k-hat: tail of the corrections" in shown


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_shows_parameters_and_where_to_go(small_fit):
    shown = small_fit._repr_html_()
    assert f"{small_fit.coreset.size:,} of {small_fit.coreset.num_rows:,} rows" in shown
    assert "beta[0]" in shown
    assert "fit.trust()" in shown
    assert "mcse" not in shown
    assert not re.search(r"<td>\d+\.\d{6,}</td>", shown), "more digits than the posterior gives a meaning to"
    assert "ESS: effective sample size" in shown


@pytest.fixture(scope="module")
def small_fit():
    generator = np.random.default_rng(0)
    data = {"x": generator.normal(size=(200, 1)), "y": generator.binomial(1, 0.5, size=200).astype(float)}
    return cm.fit(
        cm.models.logistic_regression(1),
        data,
        method=cm.Uniform(cm.kernels.RandomWalk(0.1)),
        coreset_size=20,
        draws=50,
        tune=20,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
