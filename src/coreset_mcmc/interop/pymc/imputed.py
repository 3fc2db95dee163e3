"""Missing responses, which PyMC imputes by a latent each, left out where nothing else uses them.

Given the parameters, a response that was not observed says nothing about them: its density integrates to one. So rows
whose responses are all missing go. A missing covariate is another matter: the response of its row was observed, and its
density depends on the latent, so neither can go.
"""

from __future__ import annotations

import warnings
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.interop.pymc.row_sources import Variable

ENDING = "_unobserved"
"""How PyMC ends the names of latents that stand for missing values."""
COVARIATES = (
    "Their rows have responses, which are observed and depend on the missing values, so nothing can be left out. "
    "Either drop these rows before building the model, which is right if whether a value is missing does not depend on "
    "the response; or fill the gaps several times before (multiple imputation), fit each completed table and put the "
    "draws together; or write the density of a response with its covariate integrated out as a pm.Potential."
)


class WithoutImputed:
    """A PyMC model without the latents of its missing responses; all else is the model's."""

    def __init__(self, model: Any, imputed: list[Variable]) -> None:
        joined = {rv.name.removesuffix(ENDING) for rv in imputed}
        self.whole = model
        self.free_RVs = [rv for rv in model.free_RVs if rv not in imputed]
        self.deterministics = [item for item in model.deterministics if item.name not in joined]
        self.unobserved_RVs = [*self.free_RVs, *self.deterministics]
        values = {model.rvs_to_values[rv] for rv in imputed}
        self.value_vars = [value for value in model.value_vars if value not in values]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def initial_point(self, seed: int) -> dict[str, Any]:
        """Of the values that are left."""
        point = self.whole.initial_point(seed)
        return {value.name: point[value.name] for value in self.value_vars}


def without_imputed(model: Any) -> Any:
    """The model itself, or what is left of it without the latents of missing responses."""
    imputed = [rv for rv in model.free_RVs if rv.name.endswith(ENDING) and _partner(model, rv) is not None]
    if not imputed:
        return model
    for rv in imputed:
        _check_columns(model, rv)
        _check_users(model, rv)
    counts = ", ".join(f"{_count(rv)} of {rv.name.removesuffix(ENDING)!r}" for rv in imputed)
    warnings.warn(
        f"Missing responses are left out ({counts}): given the parameters they say nothing about them. Row numbers "
        "count the rows that are left; fit.predict draws responses for any rows.",
        stacklevel=4,
    )
    return WithoutImputed(model, imputed)


def _partner(model: Any, rv: Variable) -> Variable | None:
    """The observed part of a variable whose other part is imputed."""
    name = rv.name.removesuffix(ENDING) + "_observed"
    return next((other for other in model.observed_RVs if other.name == name), None)


def _count(rv: Variable) -> int:
    shape = rv.type.shape
    return int(shape[0]) if shape and shape[0] is not None else int(rv.shape[0].eval(mode="FAST_COMPILE"))


def _check_columns(model: Any, rv: Variable) -> None:
    """Rows are left out as a whole, so they must have one response each."""
    name = rv.name.removesuffix(ENDING)
    partner = _partner(model, rv)
    assert partner is not None
    is_joint = type(partner.owner.op).__name__ == "PartialObservedRV"
    is_table = model[name].type.ndim > partner.type.ndim
    require(
        not is_joint and not is_table,
        f"observed variable {name!r}",
        got="missing values in some columns of its rows",
        expected="rows whose responses are all observed or all missing",
        fix="Give each column a variable of its own, pm.Normal('y_0', mu[:, 0], ..., observed=y[:, 0]) and so on: a "
        "missing value then leaves out one response of its row. Columns that depend on each other cannot be split: "
        "drop the rows with gaps, or write their density without the missing columns as a pm.Potential.",
    )


def _check_users(model: Any, rv: Variable) -> None:
    from pytensor.graph.traversal import ancestors

    name = rv.name.removesuffix(ENDING)
    others = [*model.free_RVs, *model.observed_RVs, *model.potentials, *model.deterministics]
    users = [other.name for other in others if other not in (rv, model[name]) and rv in ancestors([other])]
    if users:
        raise InputError(
            f"observed variable {name!r}",
            got=f"missing values, a latent each in PyMC, on which {', '.join(users)} depend",
            expected="missing values in responses alone",
            fix=COVARIATES,
        )
