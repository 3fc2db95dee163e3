"""What the estimators share: from a matrix and a response to draws of the coefficients.

The model is the regression that a formula of all columns makes: standardised columns, its default priors, its checks. A
column that never changes says nothing beside the intercept and gets a coefficient of zero. With no more rows than
``coreset_size`` there is nothing to summarise, and NUTS samples the posterior of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.methods.full_data import NUTS
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.tables import Regression, regression

RESPONSE = "response"
RESERVED = (RESPONSE, "Intercept", "sigma", "chain", "draw", "row", "statistic", "offset")
"""Names that no column can have."""
MOST_DRAWS = 1_000
"""That predictions average over."""
NUM_PER_BLOCK = 2_000_000
"""Numbers that predictions hold at a time."""


class CoresetEstimator(BaseEstimator):  # type: ignore[misc]
    """A regression on a matrix of columns, whose posterior a coreset stands in for."""

    def __init__(
        self,
        *,
        coreset_size: int = 500,
        draws: int = 1000,
        tune: int = 500,
        chains: int = 4,
        priors: Mapping[str, str] | None = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.coreset_size = coreset_size
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.priors = priors
        self.random_state = random_state
        self.progressbar = progressbar

    def _fit(self, x: np.ndarray, y: Any, family: str) -> Self:
        """Draws of the coefficients, given checked rows."""
        for name, least in (("coreset_size", 2), ("draws", 4), ("tune", 0), ("chains", 1)):
            require_count(name, getattr(self, name), at_least=least, fix="Leave it out for the default.")
        names = self._names(x)
        made = regression(_formula(names), _frame(x, names, y), family=family, priors=_priors(self.priors, names))
        seed = int(check_random_state(self.random_state).randint(2**31))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*rows.*method=cm.NUTS.*")
            fitted = fit(
                made.model,
                coreset_size=self.coreset_size if len(x) > self.coreset_size else None,
                method=None if len(x) > self.coreset_size else NUTS(),
                draws=self.draws,
                tune=self.tune,
                chains=self.chains,
                random_seed=seed,
                progressbar=self.progressbar,
            )
        self.fit_: Fit | None = fitted
        self._keep(made, fitted, names)
        return self

    def _names(self, x: np.ndarray) -> dict[str, int]:
        """Names of the columns that change, and their places: those of a data frame if a formula can hold them."""
        given = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = given if given and all(map(_is_plain, given)) else [f"x{place}" for place in range(x.shape[1])]
        changes = np.ptp(x, axis=0) > 0
        return {name: place for place, name in enumerate(names) if changes[place]}

    def _keep(self, made: Regression, fitted: Fit, names: Mapping[str, int]) -> None:
        """Draws that predictions need: intercepts (S, K), coefficients (S, K, D), and the scale of a response."""
        draws = fitted.posterior.stack(sample=("chain", "draw")).transpose("sample", ...)
        every = slice(None, None, -(-draws.sizes["sample"] // MOST_DRAWS))
        values = {str(name): draws[name].to_numpy()[every] for name in draws.data_vars}
        intercepts = values["Intercept"]
        self._intercepts = intercepts.reshape(len(intercepts), -1)
        self._slopes = np.zeros((*self._intercepts.shape, self.n_features_in_))
        for name, place in names.items():
            self._slopes[:, :, place] = values[name].reshape(self._intercepts.shape)
        self._scales = values.get("sigma")
        self.priors_ = dict(made.priors)

    def _checked(self, x: Any) -> np.ndarray:
        """New rows."""
        check_is_fitted(self)
        checked: np.ndarray = validate_data(self, x, reset=False, dtype=np.float64)
        return checked

    def _predictors(self, x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Linear predictors (B, S, K) of some rows at a time."""
        num_draws, num_predictors, _ = self._slopes.shape
        step = max(1, NUM_PER_BLOCK // (num_draws * num_predictors))
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            yield rows, np.einsum("nd,skd->nsk", x[rows], self._slopes) + self._intercepts

    def __getstate__(self) -> dict[str, Any]:
        """Without the fit, whose model is code that no pickle holds: ``fit_.save`` writes it to a file."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "fit_"}


def _is_plain(name: str) -> bool:
    """Whether a formula takes a name as it is, and nothing else is called so."""
    return name.isidentifier() and name.isascii() and name not in RESERVED


def _formula(names: Mapping[str, int]) -> str:
    return f"{RESPONSE} ~ {' + '.join(names) or '1'}"


def _frame(x: np.ndarray, names: Mapping[str, int], y: Any) -> pd.DataFrame:
    return pd.DataFrame({**{name: x[:, place] for name, place in names.items()}, RESPONSE: y})


def _priors(priors: Mapping[str, str] | None, names: Mapping[str, int]) -> dict[str, str]:
    given = dict(priors or {})
    known = [*names, "Intercept", "coefficients", "sigma"]
    unknown = [name for name in given if name not in known]
    require(
        not unknown,
        "priors",
        got=f"{unknown}",
        expected=f"names among {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}",
        fix="Columns of an array are called x0, x1, ...; those of a data frame by their names.",
    )
    return given
