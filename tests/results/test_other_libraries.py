"""Results in the hands of other libraries: pictures of arviz-plots, effects by Bambi."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import coreset_mcmc as cm

bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
from coreset_mcmc_benchmarks.interop.catalogue.bambi_models import table  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted():
    source = bmb.Model("real ~ x + (1 | group)", table(400), noncentered=False)
    return source, cm.fit(cm.from_bambi(source), coreset_size=60, draws=100, tune=100, random_seed=1, progressbar=False)


@pytest.mark.parametrize("plot", ["plot_dist", "plot_forest", "plot_trace", "plot_rank", "plot_ess"])
def test_arviz_plots_takes_the_tree(fitted, plot):
    plots = pytest.importorskip("arviz_plots")
    drawn = getattr(plots, plot)(fitted[1].tree, var_names=["Intercept", "x"], backend="matplotlib")
    assert drawn.viz.children


def test_arviz_plots_takes_predictions(fitted):
    plots = pytest.importorskip("arviz_plots")
    plots.plot_dist(fitted[1].predict(draws=5, quantiles=None), group="posterior_predictive", backend="matplotlib")


@pytest.mark.parametrize("helper", ["predictions", "comparisons", "slopes"])
def test_bambi_interprets_the_draws(fitted, helper):
    """The slope of a linear model is its coefficient."""
    source, fit = fitted
    found = getattr(bmb.interpret, helper)(source, fit.to_inferencedata(), "x")
    assert np.all(np.isfinite(found["estimate"]))
    if helper == "slopes":
        np.testing.assert_allclose(found["estimate"], float(fit.posterior["x"].mean()), rtol=1e-3)
