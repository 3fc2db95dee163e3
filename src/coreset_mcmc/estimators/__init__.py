"""Regressions in the manner of scikit-learn: ``fit(X, y)``, ``predict``, ``predict_proba``, ``score``; formulas, tables
and models of other kinds do not belong here. Importing it needs the extra ``sklearn``."""

from coreset_mcmc.interop.installed import require_library

require_library("sklearn", "coreset_mcmc.estimators")

from coreset_mcmc.estimators.classifier import CoresetClassifier  # noqa: E402
from coreset_mcmc.estimators.regressor import CoresetRegressor  # noqa: E402

__all__ = ["CoresetClassifier", "CoresetRegressor"]
