"""Logistic regression with two or more classes, as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from coreset_mcmc.core.errors import require
from coreset_mcmc.estimators.base import CoresetEstimator


class CoresetClassifier(ClassifierMixin, CoresetEstimator):  # type: ignore[misc]
    """Bayesian logistic regression on the coreset of a large table; with more than two classes a softmax of a predictor
    for each class but the first.

    Args:
        coreset_size: rows in the coreset; with no more rows than that all are used, and sampled by NUTS.
        draws, tune, chains: as for :func:`coreset_mcmc.fit`.
        priors: text such as ``{"coefficients": "Normal(0, 1)", "x0": "Normal(0, 0.1)"}``, as for formulas; columns of
            an array are called x0, x1, ...
        random_state: a seed, or a ``numpy.random.RandomState``.
        progressbar: whether to show progress.

    Attributes:
        classes_: the classes, in order.
        coef_, intercept_: posterior means, for one predictor or for each class but the first.
        fit_: the :class:`coreset_mcmc.Fit` with draws, coreset and all that it can do; a pickle leaves it out.
        priors_: the priors, in words.
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - the name that scikit-learn asks for
        """Draws of the posterior; ``X`` has a row for each observation, ``y`` its class."""
        x, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        require(
            len(self.classes_) > 1,
            "y",
            got="one class",
            expected="two classes or more",
            fix="A classifier of one class has nothing to learn.",
        )
        if len(self.classes_) == 2:
            self._fit(x, codes, "bernoulli")
        else:
            digits = len(str(len(self.classes_)))
            self._fit(x, [f"class {code:0{digits}}" for code in codes], "categorical")
        self.coef_ = self._slopes.mean(axis=0)
        self.intercept_ = self._intercepts.mean(axis=0)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of each class (N, classes), averaged over the posterior."""
        x = self._checked(X)
        result = np.empty((len(x), len(self.classes_)))
        for rows, predicted in self._predictors(x):
            if len(self.classes_) == 2:
                share = expit(predicted[..., 0]).mean(axis=1)
                result[rows] = np.column_stack([1 - share, share])
            else:
                zero = np.zeros((*predicted.shape[:2], 1))
                result[rows] = softmax(np.concatenate([zero, predicted], axis=2), axis=2).mean(axis=1)
        return result

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The most probable class of each row."""
        most = self.predict_proba(X).argmax(axis=1)
        chosen: np.ndarray = self.classes_[most]
        return chosen
