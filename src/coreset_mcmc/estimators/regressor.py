"""Linear regression with normal errors, as an estimator of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.estimators.base import CoresetEstimator

EXACTLY = "explain the response exactly"
"""Words of the regression's refusal of a response without noise."""


class CoresetRegressor(RegressorMixin, CoresetEstimator):  # type: ignore[misc]
    """Bayesian linear regression on the coreset of a large table.

    Args:
        coreset_size: rows in the coreset; with no more rows than that all are used, and sampled by NUTS.
        draws, tune, chains: as for :func:`coreset_mcmc.fit`.
        priors: text such as ``{"coefficients": "Normal(0, 1)", "x0": "Normal(0, 0.1)"}``, as for formulas; columns of
            an array are called x0, x1, ...
        random_state: a seed, or a ``numpy.random.RandomState``.
        progressbar: whether to show progress.

    Attributes:
        coef_, intercept_: posterior means.
        sigma_: the posterior mean of the standard deviation of the errors.
        fit_: the :class:`coreset_mcmc.Fit` with draws, coreset and all that it can do; a pickle leaves it out. None if
            the columns explain the response exactly.
        priors_: the priors, in words.
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - the name that scikit-learn asks for
        """Draws of the posterior; ``X`` has a row for each observation."""
        x, response = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        try:
            self._fit(x, np.asarray(response, np.float64), "gaussian")
        except InputError as error:
            if EXACTLY not in error.got or len(x) <= x.shape[1] + 1:
                raise
            self._keep_exact(x, np.asarray(response, np.float64))
        self.coef_ = self._slopes.mean(axis=0)[0]
        self.intercept_ = float(self._intercepts.mean())
        assert self._scales is not None
        self.sigma_ = float(self._scales.mean())
        return self

    def _keep_exact(self, x: np.ndarray, y: np.ndarray) -> None:
        """Without noise the posterior is the solution itself."""
        warnings.warn(
            "The columns explain the response exactly: there is no noise, and the posterior is a single point, the "
            "least-squares solution. Is something computed from the response among the columns?",
            stacklevel=3,
        )
        solution = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y)[0]
        self._intercepts, self._slopes, self._scales = solution[:1, None], solution[None, None, 1:], np.zeros(1)
        self.fit_, self.priors_ = None, {}

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """Expected responses, and on demand the standard deviations of new ones around them."""
        x = self._checked(X)
        means = x @ self.coef_ + self.intercept_
        if not return_std:
            return means
        variances = np.concatenate([predicted[..., 0].var(axis=1) for _, predicted in self._predictors(x)])
        assert self._scales is not None
        return means, np.sqrt(variances + np.mean(self._scales**2))
