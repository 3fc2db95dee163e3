"""From a table and a formula to a model.

Chains move on standardised numbers: z_j for column j of the design and z_0 for the intercept at the centre of the
predictors. With means m_j and scales s_j of the columns, and (m_y, s_y) of the response, which is standardised too
where it has a scale of its own (gaussian, t) and is left alone otherwise (m_y = 0, s_y = 1),

    beta_j = z_j s_y / s_j,   Intercept = m_y + s_y z_0 - sum_j m_j beta_j,   sigma = s_y exp(log_sigma).

Priors are those of beta_j, of sigma and of the intercept at the centre, m_y + s_y z_0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.data.engine import Engine, Local
from coreset_mcmc.models.model import Model
from coreset_mcmc.tables.dates import WithDates
from coreset_mcmc.tables.default_priors import PriorSet, choose_priors
from coreset_mcmc.tables.design import build_design, check_by_rows
from coreset_mcmc.tables.design_source import DesignSource, in_memory
from coreset_mcmc.tables.factors import Factor
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.first_pass import Measured
from coreset_mcmc.tables.formula import Formula
from coreset_mcmc.tables.frames import FrameSource, as_table
from coreset_mcmc.tables.groups import Group
from coreset_mcmc.tables.measured_design import Design
from coreset_mcmc.tables.measuring import Found, TableRows, all_rows_of, columns_of, measure
from coreset_mcmc.tables.new_rows import rows_to_predict
from coreset_mcmc.tables.request import Request
from coreset_mcmc.tables.response import Response, response_of, separating
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import INTERCEPT, WEIGHT, Structure
from coreset_mcmc.tables.terms import Plain
from coreset_mcmc.tables.users_model import users_model
from coreset_mcmc.tables.what_if import WhatIf

FIXED = "they are standardised columns of a design: use cm.from_formula with the other table"
"""Why the columns of another table cannot take the place of the rows."""
RESERVED = ("chain", "draw", "row", "statistic")
"""Names of dimensions of a result, which no variable can have."""


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """A model, its rows, and how they follow from the table."""

    model: Model
    """Parameters shown by name on the user's scale; holds the rows as well."""
    data: dict[str, np.ndarray] | DesignSource
    """{"x": (N, p), "y": (N,)}, and "offset": (N,) if there is one; standardised where the model is.

    Factors of many levels are columns of "codes": (N, F) instead of x, and so are groups; "multipliers" are what slopes
    of groups belong to, "trials", "censored" and "weight" what their names say. Of a table that is not in memory: a
    source of such rows."""
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
    response_levels: tuple[str, ...]
    """Of a response that is one of several levels: predictions are their numbers, or a probability for each."""
    distribution: Family = field(repr=False)
    """With its link; it says what is expected of new rows, and draws their responses."""
    source: DesignSource = field(repr=False)
    """Where the rows come from."""

    def __repr__(self) -> str:
        """Short, whatever data it holds."""
        return f"Regression({self.formula!r}, {self.family}, {self.num_rows:,} rows)"

    @property
    def num_rows(self) -> int:
        """N."""
        return self.source.size

    @property
    def row_numbers(self) -> np.ndarray:
        """Of each row of the data in the table that was given: N numbers; for some of them, see ``table_rows``."""
        return self.source.table_row_numbers(np.arange(self.num_rows))

    def table_rows(self, indices: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Rows of the table that rows of the data came from; the index is their numbers in the table.

        Args:
            indices: numbers of rows of the data, such as those of a coreset.
            names: columns; by default those that the formula uses.
        """
        return self.source.table_rows(np.asarray(indices), list(names or self.columns))

    def new_rows(self, table: Any) -> Any:
        """Other rows in the form of ``data``, without a response; ``fit.predict(frame)`` calls it by itself.

        The table is a data frame, a mapping of columns or a scan of files. Transforms, levels and standardisation are
        those of the first table. Rows of a table that is not in memory are checked as they are read.
        """
        return rows_to_predict(table, self.parsed, self.source.standard)


def regression(
    formula: str,
    table: pd.DataFrame | FrameSource,
    *,
    family: str = "gaussian",
    link: str | None = None,
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    weights: str | None = None,
    trials: str | int | None = None,
    where: str | None = None,
    lump_rare: int | None = None,
    engine: Engine | None = None,
) -> Regression:
    """A regression by formula.

    Args:
        formula: as in Bambi, such as ``"y ~ x1 * group + np.log(x2) + (1|store)"``.
        table: one row for each observation: a data frame, or a table on disk that is read once or twice here, and its
            rows again whenever they are needed.
        family: "gaussian", "bernoulli", "poisson", "negativebinomial", "t", "binomial", "gamma", "beta", "exponential",
            "weibull", "zero_inflated_poisson", "zero_inflated_negativebinomial", "hurdle_poisson",
            "hurdle_negativebinomial", "cumulative" or "categorical".
        link: another link than that of the family: "probit" or "cloglog" for "logit", "inverse" for a gamma's "log".
        priors: text such as ``"Normal(0, 1)"`` by the name of a term, "Intercept", "coefficients" (all terms), a
            parameter of the family, or "1|g_sigma"; the others get defaults, see :attr:`Regression.priors`.
        drop_missing: leave out rows with missing values in columns of the formula instead of refusing them.
        weights: the column with which the log-likelihood of each row is multiplied.
        trials: the column of trials of a binomial response, or their number, if the formula does not say it.
        where: a condition such as ``"duration > 0"``; other rows are left out.
        lump_rare: levels of factors with fewer rows become one level, "other".
        engine: who passes over the rows; by default this process.
    """
    require(
        not isinstance(formula, pd.DataFrame | FrameSource),
        "formula",
        got=f"a {type(formula).__name__}",
        expected="text such as 'y ~ x', and then the table",
        fix="Exchange the two arguments.",
    )
    rows = as_table(table)
    request = Request.read(
        formula, rows.names, family, link, weights=weights, trials=trials, where=where, lump_rare=lump_rare
    )
    parsed, is_in_memory = request.formula, isinstance(table, pd.DataFrame)
    if not is_in_memory:
        check_by_rows(parsed)
    table_rows = TableRows(
        WithDates(rows, request.dates) if request.dates else rows, engine or Local(), request.choice, drop_missing
    )
    columns, notes = columns_of(table_rows, request.names, request.as_levels, request.lumping)
    terms = build_design(parsed, columns, all_rows_of(table_rows, columns) if is_in_memory else None)
    response = response_of(terms, columns, parsed, request.family)
    extras = (*response.extras, *([(WEIGHT, Plain(weights))] if weights is not None else []))
    terms = replace(terms, rows=replace(terms.rows, extras=extras))
    name = (parsed.response_column or parsed.response).replace("/", "div")
    shown = [*(term.name for term in terms.terms), *(term.name for term in terms.rows.groups.terms)]
    _check_variable_names(name, shown, request.family)
    found = measure(table_rows, parsed, columns, terms, response)
    start = float(np.mean(found.start.get(INTERCEPT, np.zeros(()))))
    prior_set = choose_priors(dict(priors or {}), found.design, found.scale, start)
    notes = [*found.notes[:], *notes, *response.notes, *_references(found.design)]
    notes += _separation_notes(found.design, found.measured, response.family, prior_set)
    data = in_memory(found.source) if is_in_memory else found.source
    return Regression(
        model=replace(
            _model(found, prior_set, response, name),
            data=data,
            fixed_data=FIXED,
            name=parsed.text,
            new_rows=lambda table: rows_to_predict(table, parsed, found.source.standard),
            table=WhatIf(found.source, parsed.predictors),
        ),
        data=data,
        formula=parsed.text,
        family=response.family.name,
        response=name,
        columns=request.sources,
        terms=found.design.labels,
        priors=prior_set.in_words,
        num_dropped=found.source.kept.num_dropped,
        notes=tuple(notes),
        parsed=parsed,
        design=found.design,
        scale=found.scale,
        response_levels=response.levels,
        distribution=response.family,
        source=found.source,
    )


def from_formula(formula: str, table: pd.DataFrame | FrameSource, **options: Any) -> Model:
    """The model of :func:`regression`, of the same arguments, with its rows.

    ``cm.fit(cm.from_formula("y ~ x + (1|g)", table))``.
    """
    return regression(formula, table, **options).model


def _model(found: Found, priors: PriorSet, response: Response, name: str) -> Model:
    terms, design = found.terms, found.design
    num_factors = len(terms.rows.factors)
    names = [factor.groups for factor in terms.rows.groups.factors]
    groups = tuple(
        Group(group.name, num_factors + group.factor, len(names[group.factor]), group.columns, own)
        for group, own in zip(terms.rows.groups.terms, priors.groups, strict=True)
    )
    structure = Structure(
        response.family,
        priors.intercept,
        priors.coefficients,
        priors.parameters,
        (*(["offset"] if design.has_offset else []), *(key for key, _ in terms.rows.extras)),
        tuple(Factor.measured(term, design.means, design.scales) for term in terms.rows.factors),
        groups,
    )
    count = response.family.num_predictors
    start = dict(found.start)
    for group in groups:
        start |= group.start((count,) if count > 1 else ())
    return users_model(structure, found.scale, name, start, response.levels, names)


def _references(design: Design) -> list[str]:
    """The levels that others are compared with."""
    named = [f"{term.name} = {term.reference}" for term in design.terms if term.reference is not None]
    return [f"reference levels: {', '.join(named)}"] if named else []


def _check_variable_names(response: str, terms: list[str], family: Family) -> None:
    """Terms, other parameters and dimensions of the result share one space of names."""
    taken = [*RESERVED, INTERCEPT, *(parameter.name for parameter in family.parameters)]
    for name in [response, *terms]:
        if name in (RESERVED if name == response else taken):
            raise InputError(
                f"column {name!r}",
                got="a name that the result needs for itself",
                expected=f"a name other than {', '.join(taken)}",
                fix=f"Rename the column: frame.rename(columns={{{name!r}: '{name}_'}}).",
            )


def _separation_notes(design: Design, measured: Measured, family: Family, priors: PriorSet) -> list[str]:
    places = separating(measured.of_success, measured.of_others, family)
    if not places:
        return []
    labels = [design.labels[place] for place in places]
    without_prior = [design.labels[place] for place in places if priors.coefficients[place].name == "Flat"]
    what = "parts the two outcomes" if family.links[0] == "logit" else "parts rows with counts from rows without"
    require(
        not without_prior,
        "priors",
        got=f"Flat for {', '.join(without_prior)}, which {what}",
        expected="a proper prior there: without one there is no posterior",
        fix="Use e.g. 'Normal(0, 2.5)'.",
    )
    listed = f"{', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''}"
    return [f"each of {listed} {what} by itself: the prior decides how large its effect is"]
