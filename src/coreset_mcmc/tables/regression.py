"""From a table and a formula to a model.

Chains move on standardised numbers: z_j for column j of the design and z_0 for the intercept at the centre of the
predictors. With means m_j and scales s_j of the columns, and (m_y, s_y) of the response, which is standardised too
where it has a scale of its own (gaussian, t) and is left alone otherwise (m_y = 0, s_y = 1),

    beta_j = z_j s_y / s_j,   Intercept = m_y + s_y z_0 - sum_j m_j beta_j,   sigma = s_y exp(log_sigma).

Priors are those of beta_j, of sigma and of the intercept at the centre, m_y + s_y z_0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.models.model import Model
from coreset_mcmc.tables.columns import check_frame, check_levels, clean_rows
from coreset_mcmc.tables.default_priors import PriorSet, choose_priors
from coreset_mcmc.tables.design import Design, build_design
from coreset_mcmc.tables.families import Family, family_named
from coreset_mcmc.tables.formula import Formula, read_formula
from coreset_mcmc.tables.response import response_values, separating
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import INTERCEPT, Structure
from coreset_mcmc.tables.start import starting_position
from coreset_mcmc.tables.users_model import users_model

RESERVED = ("chain", "draw", "row", "statistic")
"""Names of dimensions of a result, which no variable can have."""


@dataclass(frozen=True, eq=False)
class Regression:
    """A model, its rows, and how they follow from the table."""

    model: Model
    """Parameters shown by name on the user's scale; holds the rows as well."""
    data: dict[str, np.ndarray]
    """{"x": (N, p), "y": (N,)}, and "offset": (N,) if there is one; standardised where the model is."""
    row_numbers: np.ndarray
    """Of each row of the data in the table that was given."""
    formula: str
    family: str
    response: str
    """How the response is called in predictions."""
    columns: tuple[str, ...]
    """Columns of the table that the formula uses."""
    terms: tuple[str, ...]
    """Names of the columns of the design, without the intercept."""
    priors: dict[str, str]
    """The prior of every parameter in words; that of the intercept holds where all predictors are at their means."""
    num_dropped: int
    notes: tuple[str, ...]
    """What a user should know."""
    parsed: Formula = field(repr=False)
    design: Design = field(repr=False)
    scale: UserScale = field(repr=False)

    def new_rows(self, frame: pd.DataFrame) -> dict[str, np.ndarray]:
        """Other rows in the form of ``data``, without a response: ``fit.predict(regression.new_rows(frame))``.

        Transforms, levels and standardisation are those of the first table.
        """
        check_frame(frame)
        lacking = [name for name in self.parsed.predictors if name not in set(map(str, frame.columns))]
        require(
            not lacking,
            "new rows",
            got=f"no columns {lacking}",
            expected=f"columns {list(self.parsed.predictors)}",
            fix="Pass a table with the columns of the first one.",
        )
        rows = clean_rows(frame, self.parsed.predictors, self.parsed.categorical, drop_missing=False)
        x, offset = self.design.rows(rows.frame)
        return {"x": x} if offset is None else {"x": x, "offset": offset / self.scale.response_scale}


def regression(
    formula: str,
    frame: pd.DataFrame,
    *,
    family: str = "gaussian",
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> Regression:
    """A regression by formula.

    Args:
        formula: as in Bambi, such as ``"y ~ x1 * group + np.log(x2)"``, without group-specific terms.
        frame: the table, one row for each observation.
        family: "gaussian", "bernoulli" (logit), "poisson" (log), "negativebinomial" (log) or "t".
        priors: text such as ``"Normal(0, 1)"`` by the name of a term, "Intercept", "coefficients" (all terms),
            "sigma", "nu" or "alpha"; the others get defaults, see :attr:`Regression.priors`.
        drop_missing: leave out rows with missing values in columns of the formula instead of refusing them.
    """
    require(
        not isinstance(formula, pd.DataFrame),
        "formula",
        got="a DataFrame",
        expected="text such as 'y ~ x', and then the table",
        fix="Exchange the two arguments.",
    )
    check_frame(frame)
    chosen = family_named(family)
    parsed = read_formula(formula, map(str, frame.columns))
    rows = clean_rows(frame, parsed.columns, parsed.categorical, drop_missing=drop_missing)
    check_levels(rows.frame, parsed.categorical)
    design = build_design(rows.frame, parsed)
    column = design.response if parsed.response_column is None else _values(rows.frame[parsed.response_column])
    values, notes = response_values(column, parsed, chosen, rows.row_numbers)
    scale = _user_scale(values, design, chosen)
    y = (values - scale.response_mean) / scale.response_scale if chosen.has_scale else values
    data = {"x": design.x, "y": y}
    if design.offset is not None:
        data["offset"] = design.offset / scale.response_scale
    name = (parsed.response_column or parsed.response).replace("/", "div")
    _check_variable_names(name, design, chosen)
    start = starting_position(y, data.get("offset"), design, chosen)
    prior_set = choose_priors(dict(priors or {}), chosen, design, scale, float(start.get(INTERCEPT, np.zeros(()))))
    structure = Structure(
        chosen.name, prior_set.intercept, prior_set.coefficients, prior_set.positive, design.offset is not None
    )
    notes += _separation_notes(design, y, chosen, prior_set)
    if rows.num_dropped:
        notes.insert(0, f"{rows.num_dropped} rows with missing values dropped")
    return Regression(
        model=replace(users_model(structure, scale, name, start), data=data, name=parsed.text),
        data=data,
        row_numbers=rows.row_numbers,
        formula=parsed.text,
        family=chosen.name,
        response=name,
        columns=parsed.columns,
        terms=design.labels,
        priors=prior_set.in_words,
        num_dropped=rows.num_dropped,
        notes=tuple(notes),
        parsed=parsed,
        design=design,
        scale=scale,
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
    return regression(formula, frame, family=family, priors=priors, drop_missing=drop_missing).model


def _values(column: pd.Series) -> Any:
    return column.array if isinstance(column.dtype, pd.CategoricalDtype) else column.to_numpy()


def _user_scale(y: np.ndarray, design: Design, family: Family) -> UserScale:
    """Where the standardised numbers lie on the user's scale."""
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
    return UserScale(design.terms, design.means, design.scales, mean, unit, design.has_intercept)


def _check_variable_names(response: str, design: Design, family: Family) -> None:
    """Terms, other parameters and dimensions of the result share one space of names."""
    taken = [*RESERVED, INTERCEPT, *family.positive]
    for name in [response, *(term.name for term in design.terms)]:
        if name in (RESERVED if name == response else taken):
            raise InputError(
                f"column {name!r}",
                got="a name that the result needs for itself",
                expected=f"a name other than {', '.join(taken)}",
                fix=f"Rename the column: frame.rename(columns={{{name!r}: '{name}_'}}).",
            )


def _separation_notes(design: Design, y: np.ndarray, family: Family, priors: PriorSet) -> list[str]:
    places = separating(design.x, y, family)
    if not places:
        return []
    labels = [design.labels[place] for place in places]
    without_prior = [design.labels[place] for place in places if priors.coefficients[place].name == "Flat"]
    what = "parts the two outcomes" if family.name == "bernoulli" else "parts rows with counts from rows without"
    require(
        not without_prior,
        "priors",
        got=f"Flat for {', '.join(without_prior)}, which {what}",
        expected="a proper prior there: without one there is no posterior",
        fix="Use e.g. 'Normal(0, 2.5)'.",
    )
    listed = f"{', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''}"
    return [f"each of {listed} {what} by itself: the prior decides how large its effect is"]
