"""A Bambi model as it stands, through the PyMC model that it builds.

Nothing is rebuilt on fewer rows: default priors and the levels of factors depend on the data. The design matrix, the
response and the indices of groups are constants in the PyMC model, which become the rows.

Bambi centres the predictors and moves the intercept back after sampling; the posterior here shows the same intercept,
and leaves out what Bambi leaves out: the offsets of the non-centred parametrisation and the mean of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Position
from coreset_mcmc.interop.bambi_refusals import check_start, check_weights
from coreset_mcmc.interop.bambi_rows import new_rows_of
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.interop.pymc.adapter import converted
from coreset_mcmc.models.model import Model

OFFSET = "_offset"
"""How Bambi ends the names of standardised group-specific effects."""


FIXED = "Bambi has centred them and taken its priors from them: use cm.from_formula, which has the same priors"
"""Why other rows cannot take their place."""


@double_precision
def from_bambi(model: Any, *, name: str | None = None) -> Model:
    """A :class:`~coreset_mcmc.Model` from a Bambi model, with its data: ``cm.fit(cm.from_bambi(model))``.

    Args:
        model: a ``bambi.Model``, built or not. Row numbers of the coreset count the rows of ``model.data``, from which
            Bambi may have dropped rows with missing values.
        name: how the model is called in messages and files; by default its formula.

    ``fit.predict(frame)`` takes a data frame with the predictors of the formula, by Bambi's own terms.

    A response ``weighted(y, w)`` multiplies the log-likelihood of each row by its weight, as in Bambi.
    """
    require_library("bambi", "from_bambi")
    import bambi

    require(
        isinstance(model, bambi.Model),
        "from_bambi(model)",
        got=type(model).__name__,
        expected="a bambi.Model",
        fix="Pass bmb.Model(formula, data); a PyMC model goes through cm.from_pymc.",
    )
    check_weights(model)
    if not model.built:
        model.build()
    check_start(model)
    through_pymc, graph = converted(model.backend.model, None, name or str(model.formula.main))
    intercepts = _centred_intercepts(model)
    inner = through_pymc.constrain
    assert inner is not None

    def constrain(position: Position) -> dict[str, jax.Array]:
        values = dict(inner(position))
        for intercept in intercepts:
            values[intercept.name] = intercept.moved_back(values)
        return {key: value for key, value in values.items() if not key.endswith(OFFSET)}

    dims = {key: value for key, value in (through_pymc.dims or {}).items() if not key.endswith(OFFSET)}
    assert isinstance(through_pymc.data, dict)
    return replace(
        through_pymc,
        constrain=constrain,
        dims=dims,
        fixed_data=FIXED,
        new_rows=new_rows_of(model, through_pymc.data, graph.needed_for_responses()),
    )


@dataclass(frozen=True)
class _CentredIntercept:
    """An intercept of centred predictors."""

    name: str
    terms: tuple[str, ...]
    means: np.ndarray
    """Of the columns of the design matrix, term after term."""

    def moved_back(self, values: dict[str, jax.Array]) -> jax.Array:
        intercept = values[self.name]
        coefficients = jnp.concatenate([values[term].reshape(-1, *intercept.shape) for term in self.terms])
        return intercept - jnp.tensordot(jnp.asarray(self.means), coefficients, axes=1)


def _centred_intercepts(model: Any) -> list[_CentredIntercept]:
    if not model.center_predictors:
        return []
    parts = model.backend.distributional_components.values()
    called: Callable[[Any], str] = lambda term: getattr(term, "alias", None) or term.name  # noqa: E731
    return [
        _CentredIntercept(
            called(part.component.intercept_term),
            tuple(called(term) for term in part.component.common_terms.values()),
            np.asarray(part.design_matrix_without_intercept).mean(axis=0),
        )
        for part in parts
        if part.component.intercept_term and part.component.common_terms
    ]
