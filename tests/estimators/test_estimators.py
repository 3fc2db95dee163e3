"""Estimators in the manner of scikit-learn: its own checks, and predictions that are those of the posterior."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install coreset-mcmc[sklearn]")
from sklearn.utils.estimator_checks import estimator_checks_generator

from coreset_mcmc.estimators import CoresetClassifier, CoresetRegressor

QUICK = {"draws": 100, "tune": 100, "chains": 2}
WITHOUT_FITS = {
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
"""Checks of scikit-learn that fit nothing: in every run. All others are run with ``--slow``."""


def checks():
    for estimator in (CoresetRegressor(**QUICK), CoresetClassifier(**QUICK)):
        for made, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            marks = () if name in WITHOUT_FITS else pytest.mark.slow
            yield pytest.param(made, check, id=f"{type(made).__name__}-{name}", marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), checks())
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


RNG = np.random.default_rng(1)
SIZE = 3_000
X = RNG.normal(size=(SIZE, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
ETA = 0.5 + X @ [1.0, -0.1, 5.0] - 5.0
Y = ETA + 0.7 * RNG.normal(size=SIZE)


@pytest.fixture(scope="module")
def regressor():
    return CoresetRegressor(coreset_size=100, draws=250, tune=200, random_state=3).fit(X, Y)


@pytest.mark.full
@pytest.mark.statistical
def test_a_regression_is_least_squares(regressor):
    """With vague priors the posterior mean is least squares to a hundredth of its spread; five standard errors of 200
    effective draws and the shift that a KL of 0.02 allows: false alarms in fewer than 1 of 10^5 runs."""
    assert regressor.fit_.kl_estimate < 0.02
    design = np.column_stack([np.ones(SIZE), X])
    best = np.linalg.lstsq(design, Y, rcond=None)[0]
    spread = 0.7 * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    found = np.array([regressor.intercept_, *regressor.coef_])
    assert np.all(np.abs(found - best) < (5 / np.sqrt(200) + np.sqrt(0.04) + 0.01) * spread)
    assert regressor.score(X, Y) > 0.7
    mean, deviation = regressor.predict(X[:5], return_std=True)
    np.testing.assert_allclose(mean, design[:5] @ found)
    np.testing.assert_allclose(deviation, regressor.sigma_, rtol=0.02)


@pytest.mark.full
def test_predictions_are_those_of_the_fit(regressor):
    frame = pd.DataFrame({f"x{place}": X[:4, place] for place in range(3)})
    expected = regressor.fit_.predict(frame, draws=1_000)["expected"]["response"].sel(statistic="mean").to_numpy()
    np.testing.assert_allclose(regressor.predict(X[:4]), expected, rtol=1e-8)


@pytest.mark.full
def test_a_pickle_predicts_as_before(regressor):
    again = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(again.predict(X[:4]), regressor.predict(X[:4]))
    assert not hasattr(again, "fit_")


@pytest.mark.full
@pytest.mark.parametrize("num_classes", [2, 3])
def test_probabilities_are_those_of_the_fit(num_classes):
    """Of two classes and of three, by the names of a data frame; a constant column has a coefficient of zero."""
    frame = pd.DataFrame(X, columns=["age", "income", "dose"]).assign(constant=1.0)
    cuts = np.quantile(ETA, np.arange(1, num_classes) / num_classes)
    labels = np.array(["low", "middle", "up"])[np.digitize(ETA + RNG.logistic(size=SIZE), cuts)]
    made = CoresetClassifier(coreset_size=100, draws=250, tune=200, random_state=3).fit(frame, labels)
    assert list(made.classes_) == sorted(set(labels))
    assert np.all(made.coef_[:, 3] == 0)
    probabilities = made.predict_proba(frame[:4])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    expected = made.fit_.predict(frame[:4], draws=1_000)["expected"]["response"].sel(statistic="mean").to_numpy()
    ours = probabilities[:, 1] if num_classes == 2 else probabilities
    np.testing.assert_allclose(ours, expected.reshape(ours.shape), rtol=1e-6)
    np.testing.assert_array_equal(made.predict(frame[:4]), made.classes_[probabilities.argmax(axis=1)])
    assert {"age", "income", "dose"} <= set(made.fit_.posterior)


def test_a_response_without_noise_is_solved_with_a_warning():
    with pytest.warns(UserWarning, match="explain the response exactly"):
        made = CoresetRegressor().fit(X[:20], 2 + X[:20] @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose([made.intercept_, *made.coef_], [2.0, 1.0, 2.0, 3.0])
    assert made.fit_ is None
    np.testing.assert_array_equal(made.predict(X[:2], return_std=True)[1], 0)


def test_wrong_arguments_are_refused_in_their_own_words():
    with pytest.raises(cm.InputError, match="coreset_size"):
        CoresetRegressor(coreset_size=0).fit(X[:20], Y[:20])
    with pytest.raises(cm.InputError, match=r"names among x0, x1, x2, Intercept"):
        CoresetRegressor(priors={"age": "Normal(0, 1)"}).fit(X[:20], Y[:20])
    with pytest.raises(cm.InputError, match="one class"):
        CoresetClassifier().fit(X[:20], np.zeros(20))
