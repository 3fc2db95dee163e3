"""Expected responses of every family, and of effects of groups, are Bambi's on the same draws."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coreset_mcmc as cm
from tests.helpers.family_examples import LEFT, families_table

pytestmark = [pytest.mark.full, pytest.mark.slow]

CASES = [(f"{left} ~ x + g", name) for name, left in LEFT.items()]
CASES += [("y ~ x + (1|g)", "gaussian"), ("y ~ x + (x|g) + (1|h)", "gaussian"), ("p(k, n) ~ x + (x|g)", "binomial")]


def expected_by_bambi(parameters, family):
    """From the parameters that Bambi predicts for each row."""
    mean = parameters["p" if "p" in parameters else "mu"].to_numpy()
    if "psi" not in parameters:
        return mean
    psi = parameters["psi"].to_numpy()[..., None]
    if family.startswith("zero_inflated"):
        return psi * mean
    alpha = parameters["alpha"].to_numpy()[..., None] if "alpha" in parameters else None
    zero = np.exp(-mean) if alpha is None else (alpha / (alpha + mean)) ** alpha
    return psi * mean / (1.0 - zero)


@pytest.mark.parametrize(("formula", "family"), CASES)
def test_expected_responses_are_those_of_bambi(formula, family):
    bambi = pytest.importorskip("bambi")
    frame = families_table()
    new = frame.iloc[:30]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cm.fit(
            cm.from_formula(formula, frame, family=family),
            coreset_size=50, draws=20, tune=20, chains=2, method=cm.Uniform(cm.kernels.RandomWalk(0.05)),
            random_seed=1, progressbar=False,
        )  # fmt: skip
        link = {"link": "log"} if family == "gamma" else {}
        peer = bambi.Model(formula, frame, family=family, noncentered=False, **link)
        peer.build()
        predicted = peer.predict(fit.to_inferencedata(), data=new, kind="response_params", inplace=False)
    theirs = expected_by_bambi(predicted["posterior"], family)
    ours = next(iter(fit.predict(new, draws=10_000, quantiles=None)["expected"].data_vars.values())).to_numpy()
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=1e-7)
