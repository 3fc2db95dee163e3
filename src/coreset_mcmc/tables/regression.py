"""From a table and a formula to a model.

Chains move on standardised numbers: z_j for column j of the design and z_0 for the intercept at the centre of the
predictors. With means m_j and scales s_j of the columns, and (m_y, s_y) of the response, which is standardised too
where it has a scale of its own (gaussian, t) and is left alone otherwise (m_y = 0, s_y = 1),

    beta_j = z_j s_y / s_j,   Intercept = m_y + s_y z_0 - sum_j m_j beta_j,   sigma = s_y exp(log_sigma).

Priors are those of beta_j, of sigma and of the intercept at the centre, m_y + s_y z_0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.errors import InputError, require
from coreset_mcmc.model import Model
from coreset_mcmc.selection import Selection, Stratified
from coreset_mcmc.tables.columns import check_frame, clean_rows
from coreset_mcmc.tables.default_priors import PriorSet, choose_priors
from coreset_mcmc.tables.design import Design, build_design
from coreset_mcmc.tables.families import Family, family_named
from coreset_mcmc.tables.formula import Formula, read_formula
from coreset_mcmc.tables.response import response_values, separating
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.shown import shown_model
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT, Structure

RARE = 0.1
"""An outcome with a smaller share of the rows gets half of the coreset."""
SMALLEST_RESIDUAL_VARIANCE = 1e-12
"""Of a standardised response: below this the predictors explain it exactly."""


@dataclass(frozen=True)
class Regression:
    """A model, its rows, and how they follow from the table."""

    model: Model
    """Parameters shown by name on the user's scale; holds the rows as well."""
    data: dict[str, np.ndarray]
    """{"x": (N, p), "y": (N,)}, and "offset": (N,) if there is one; columns and response standardised."""
    row_numbers: np.ndarray
    """Of each row of the data in the table that was given."""
    formula: str
    family: str
    response: str
    columns: tuple[str, ...]
    """Columns of the table that the formula uses."""
    terms: tuple[str, ...]
    """Names of the columns of the design."""
    priors: dict[str, str]
    """The prior of every parameter in words; that of the intercept holds where all predictors are at their means."""
    num_dropped: int
    notes: tuple[str, ...]
    """What a user should know."""
    selection: Selection | None
    """How to choose the rows of a coreset; None for uniformly."""
    new_rows: Any = field(repr=False, default=None)
    """``frame -> {"x": ..., "y": ...}``: other rows in the form of ``data``, for ``fit.predict``."""


def regression(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "gaussian",
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> Regression:
    """A regression by formula.

    Args:
        frame: the table, one row for each observation.
        formula: as in Bambi, such as ``"y ~ x1 * group + np.log(x2)"``, without group-specific terms.
        family: "gaussian", "bernoulli" (logit), "poisson" (log), "negativebinomial" (log) or "t".
        priors: text such as ``"Normal(0, 1)"`` by the name of a term, "Intercept", "coefficients" (all terms),
            "sigma", "nu" or "alpha"; the others get defaults, see :attr:`Regression.priors`.
        drop_missing: leave out rows with missing values in columns of the formula instead of refusing them.
    """
    check_frame(frame)
    checked = read_formula(formula, map(str, frame.columns))
    chosen_family = family_named(family)
    rows = clean_rows(frame, checked, drop_missing=drop_missing)
    design = build_design(rows.frame, checked)
    column = design.response if checked.response_column is None else _values(rows.frame[checked.response_column])
    y, notes = response_values(column, checked, chosen_family, rows.row_numbers)
    scale, y = _user_scale(y, design, chosen_family)
    start = _start(y, design, chosen_family, checked)
    prior_set = choose_priors(dict(priors or {}), chosen_family, design, scale, start.get(INTERCEPT))
    notes += _separation_notes(design, y, chosen_family, prior_set)
    if rows.num_dropped:
        notes.insert(0, f"{rows.num_dropped} rows with missing values dropped")
    data = {"x": design.x, "y": y}
    if design.offset is not None:
        data["offset"] = design.offset / scale.response_scale
    structure = Structure(
        chosen_family.name,
        prior_set.intercept,
        prior_set.coefficients,
        prior_set.positive,
        design.offset is not None,
    )
    name = checked.response_column or checked.response
    model = shown_model(structure, scale, name.replace("/", "div"), start)
    is_rare = chosen_family.name == "bernoulli" and min(y.mean(), 1.0 - y.mean()) < RARE
    if is_rare:
        notes.append(
            f"one outcome is rare ({min(y.mean(), 1 - y.mean()):.2g} of the rows): half of the coreset goes to it"
        )
    return Regression(
        model=replace(model, data=data, name=checked.text),
        data=data,
        row_numbers=rows.row_numbers,
        formula=checked.text,
        family=chosen_family.name,
        response=checked.response,
        columns=checked.columns,
        terms=design.labels,
        priors=prior_set.in_words,
        num_dropped=rows.num_dropped,
        notes=tuple(notes),
        selection=Stratified("y") if is_rare else None,
    )


def from_formula(
    formula: str,
    frame: pd.DataFrame,
    *,
    family: str = "gaussian",
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> Model:
    """The model of :func:`regression` with its rows: ``cm.fit(cm.from_formula("y ~ x", frame))``."""
    return regression(frame, formula, family=family, priors=priors, drop_missing=drop_missing).model


def _values(column: pd.Series) -> Any:
    return column.array if isinstance(column.dtype, pd.CategoricalDtype) else column.to_numpy()


def _user_scale(y: np.ndarray, design: Design, family: Family) -> tuple[UserScale, np.ndarray]:
    """Where the standardised numbers lie on the user's scale, and the response as the model sees it."""
    mean, unit = 0.0, 1.0
    if family.has_scale:
        free = y if design.offset is None else y - design.offset
        mean = float(free.mean()) if design.has_intercept else 0.0
        unit = float(np.sqrt(np.mean((free - mean) ** 2)))
        require(
            unit > 0,
            "response",
            got="nothing but its offset",
            expected="values that vary around the offset",
            fix="Leave the offset out.",
        )
        y = (y - mean) / unit
    return UserScale(design.terms, design.means, design.scales, mean, unit, design.has_intercept), y


def _start(y: np.ndarray, design: Design, family: Family, formula: Formula) -> dict[str, np.ndarray]:
    """Where chains start: least squares where the response has a scale, no effects otherwise."""
    count = design.x.shape[1]
    coefficients, variance = np.zeros(count), 1.0
    if family.has_scale:
        free = y if design.offset is None else y - design.offset / 1.0
        if count and design.offset is None:
            cross = design.x.T @ free / len(free)
            coefficients = np.linalg.solve(design.gram, cross)
            variance = float(1.0 - cross @ coefficients)
        if variance <= SMALLEST_RESIDUAL_VARIANCE:
            raise InputError(
                f"formula {formula.text!r}",
                got="predictors that explain the response exactly",
                expected="a response with noise",
                fix="Is the response, or something computed from it, among the predictors? With as many columns as "
                "rows, use fewer.",
            )
    start: dict[str, np.ndarray] = {}
    if design.has_intercept:
        start[INTERCEPT] = np.array(0.0 if family.has_scale else _link_of_mean(y, design, family))
    if count:
        start[COEFFICIENTS] = coefficients
    logarithm = {"sigma": 0.5 * math.log(max(variance, 1e-6)), "nu": math.log(10.0), "alpha": 0.0}
    return {**start, **{f"log_{name}": np.array(logarithm[name]) for name in family.positive}}


def _link_of_mean(y: np.ndarray, design: Design, family: Family) -> float:
    """The intercept that gives the mean response where no predictor has an effect."""
    mean = float(y.mean())
    offset = np.zeros(1) if design.offset is None else design.offset
    if family.link == "logit":
        return math.log(mean) - math.log1p(-mean) - float(offset.mean())
    shift = float(offset.max())
    return math.log(mean) - shift - math.log(float(np.mean(np.exp(offset - shift))))


def _separation_notes(design: Design, y: np.ndarray, family: Family, priors: PriorSet) -> list[str]:
    places = separating(design.x, y, family)
    if not places:
        return []
    labels = [design.labels[place] for place in places]
    without_prior = [design.labels[place] for place in places if priors.coefficients[place].name == "Flat"]
    what = "separate the two outcomes" if family.name == "bernoulli" else "separate rows with counts from those without"
    require(
        not without_prior,
        "priors",
        got=f"Flat for {', '.join(without_prior)}, which {what}",
        expected="a proper prior there: without one there is no posterior",
        fix="Use e.g. 'Normal(0, 2.5)'.",
    )
    return [
        f"{', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''} {what}: the prior decides how large the effect is"
    ]
