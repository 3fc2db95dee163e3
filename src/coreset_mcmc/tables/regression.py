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
from coreset_mcmc.tables.default_priors import PriorSet, choose_priors
from coreset_mcmc.tables.design import build_design, check_by_rows
from coreset_mcmc.tables.design_source import DesignSource, in_memory
from coreset_mcmc.tables.factors import Factor
from coreset_mcmc.tables.families import Family, family_named
from coreset_mcmc.tables.first_pass import Measured
from coreset_mcmc.tables.formula import Formula, read_formula
from coreset_mcmc.tables.frames import FrameSource, as_table
from coreset_mcmc.tables.measured_design import Design
from coreset_mcmc.tables.measuring import all_rows_of, columns_of, measure
from coreset_mcmc.tables.new_rows import rows_to_predict
from coreset_mcmc.tables.response import response_of, separating
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import INTERCEPT, Structure
from coreset_mcmc.tables.users_model import users_model

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

    Factors of many levels are columns of "codes": (N, F) instead of x. Of a table that is not in memory: a source of
    such rows."""
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
        those of the first table. Rows of a table that is not in memory are
        checked as they are read.
        """
        return rows_to_predict(table, self.parsed, self.source.standard)


def regression(
    formula: str,
    table: pd.DataFrame | FrameSource,
    *,
    family: str = "gaussian",
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    engine: Engine | None = None,
) -> Regression:
    """A regression by formula.

    Args:
        formula: as in Bambi, such as ``"y ~ x1 * group + np.log(x2)"``, without group-specific terms.
        table: one row for each observation: a data frame, or a table on disk that is read once or twice here, and its
            rows again whenever they are needed.
        family: "gaussian", "bernoulli" (logit), "poisson" (log), "negativebinomial" (log) or "t".
        priors: text such as ``"Normal(0, 1)"`` by the name of a term, "Intercept", "coefficients" (all terms),
            "sigma", "nu" or "alpha"; the others get defaults, see :attr:`Regression.priors`.
        drop_missing: leave out rows with missing values in columns of the formula instead of refusing them.
        engine: who passes over the rows; by default this process.
    """
    require(
        not isinstance(formula, pd.DataFrame | FrameSource),
        "formula",
        got=f"a {type(formula).__name__}",
        expected="text such as 'y ~ x', and then the table",
        fix="Exchange the two arguments.",
    )
    rows, engine = as_table(table), engine or Local()
    is_in_memory = isinstance(table, pd.DataFrame)
    chosen = family_named(family)
    parsed = read_formula(formula, rows.names)
    if not is_in_memory:
        check_by_rows(parsed)
    columns = columns_of(rows, engine, parsed, drop_missing=drop_missing)
    terms = build_design(parsed, columns, all_rows_of(rows, columns) if is_in_memory else None)
    response, notes = response_of(terms, columns, parsed, chosen)
    name = (parsed.response_column or parsed.response).replace("/", "div")
    _check_variable_names(name, [term.name for term in terms.terms], chosen)
    measured, design, source, start = measure(
        rows, engine, parsed, columns, terms, response, chosen, drop_missing=drop_missing
    )
    scale = UserScale(
        design.terms, design.means, design.scales, design.response_mean, design.response_scale, design.has_intercept
    )
    prior_set = choose_priors(dict(priors or {}), chosen, design, scale, float(start.get(INTERCEPT, np.zeros(()))))
    structure = Structure(
        chosen.name,
        prior_set.intercept,
        prior_set.coefficients,
        prior_set.positive,
        design.has_offset,
        tuple(Factor.measured(term, design.means, design.scales) for term in terms.rows.factors),
    )
    notes += _separation_notes(design, measured, chosen, prior_set)
    if source.kept.num_dropped:
        notes.insert(0, f"{source.kept.num_dropped} rows with missing values dropped")
    data = in_memory(source) if is_in_memory else source
    return Regression(
        model=replace(
            users_model(structure, scale, name, start),
            data=data,
            fixed_data=FIXED,
            name=parsed.text,
            new_rows=lambda table: rows_to_predict(table, parsed, source.standard),
        ),
        data=data,
        formula=parsed.text,
        family=chosen.name,
        response=name,
        columns=parsed.columns,
        terms=design.labels,
        priors=prior_set.in_words,
        num_dropped=source.kept.num_dropped,
        notes=tuple(notes),
        parsed=parsed,
        design=design,
        scale=scale,
        source=source,
    )


def from_formula(
    formula: str,
    table: pd.DataFrame | FrameSource,
    *,
    family: str = "gaussian",
    priors: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    engine: Engine | None = None,
) -> Model:
    """The model of :func:`regression` with its rows: ``cm.fit(cm.from_formula("y ~ x", table))``."""
    return regression(formula, table, family=family, priors=priors, drop_missing=drop_missing, engine=engine).model


def _check_variable_names(response: str, terms: list[str], family: Family) -> None:
    """Terms, other parameters and dimensions of the result share one space of names."""
    taken = [*RESERVED, INTERCEPT, *family.positive]
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
