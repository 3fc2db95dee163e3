"""From what one pass has measured to a standardised design.

With an intercept each column j becomes (x_j - m_j) / s_j with its mean and standard deviation; without one it is
divided by its root mean square alone. Dummies, interactions, splines and polynomials are all columns here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.design import DesignTerms, Term
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.first_pass import Measured
from coreset_mcmc.tables.moments import Ranges

SMALLEST_EIGENVALUE = 1e-12
"""Of the correlation matrix of the design: below this its columns are the same up to rounding."""


@dataclass(frozen=True, eq=False)
class Design:
    """The standardised columns, and what is known about all rows."""

    means: np.ndarray
    scales: np.ndarray
    has_intercept: bool
    has_offset: bool
    terms: tuple[Term, ...]
    labels: tuple[str, ...]
    """The name of each column."""
    gram: np.ndarray
    """x'x / N."""
    response_mean: float
    response_scale: float
    """Of a response with a scale of its own, without its offset; 0 and 1 otherwise."""
    with_response: np.ndarray
    """x'y / N, for such a response, standardised and without its offset."""
    tail_means: np.ndarray
    """Of what was measured of the response, of the offset, and of the numbers that slopes of groups belong to."""
    multiplier_scales: np.ndarray
    """Standard deviations of those numbers."""
    row_sum_scales: np.ndarray
    """For every term the standard deviation of the sum of its columns."""
    raw_means: np.ndarray
    deviations: np.ndarray
    """Means and standard deviations of the columns, whether or not they are centred."""


def standardised_design(found: DesignTerms, measured: Measured, shift: np.ndarray, family: Family) -> Design:
    """Means, scales and products; refuses columns that do not vary or depend on each other."""
    labels, width, count = found.labels, len(found.labels), measured.moments.num_rows
    num_slopes = len(found.rows.groups.labels)
    _check_varies(measured.ranges, labels, has_intercept=found.has_intercept)
    means = shift + measured.moments.means
    squares = measured.moments.products / count
    multiplier_scales = np.sqrt(np.diag(squares)[len(squares) - num_slopes :])
    _check_slopes(multiplier_scales, found)
    sums = np.array([np.sqrt(max(squares[term.columns, term.columns].sum(), 0.0)) for term in found.terms])
    own_deviations = np.sqrt(np.diag(squares)[:width])
    if not found.has_intercept:
        squares = squares + np.outer(means, means)
    deviations = np.sqrt(np.diag(squares))
    scales = deviations[:width]
    gram = squares[:width, :width] / np.outer(scales, scales)
    _check_rank(gram, labels, count)
    response_mean, response_scale, with_response = 0.0, 1.0, np.zeros(width)
    if family.has_scale:
        response_mean = float(means[width]) if found.has_intercept else 0.0
        response_scale = float(deviations[width])
        require(
            response_scale > 0,
            "response",
            got="nothing but its offset",
            expected="values that vary around the offset",
            fix="Leave the offset out.",
        )
        with_response = squares[:width, width] / (scales * response_scale)
    elif family.divides_by_mean:
        response_scale = float(means[width])
    return Design(
        means[:width] if found.has_intercept else np.zeros(width),
        scales,
        found.has_intercept,
        bool(found.offset_labels),
        found.terms,
        found.labels,
        gram,
        response_mean,
        response_scale,
        with_response,
        means[width:],
        multiplier_scales,
        sums,
        means[:width],
        own_deviations,
    )


def _check_slopes(scales: np.ndarray, found: DesignTerms) -> None:
    constant = [label for label, scale in zip(found.rows.groups.labels, scales, strict=True) if not scale > 0]
    require(
        not constant,
        "design",
        got=f"slopes of groups of {', '.join(constant)}, the same in every row",
        expected="numbers that vary",
        fix="Write (1|g) for effects of groups without slopes.",
    )


def _check_varies(ranges: Ranges, labels: Sequence[str], *, has_intercept: bool) -> None:
    low, high = ranges
    is_constant = (low == high) & (has_intercept | (low == 0))
    if is_constant.any():
        constant = [(label, value) for label, value, same in zip(labels, low, is_constant, strict=True) if same]
        listed = ", ".join(f"{label} = {value:g}" for label, value in constant[:10])
        raise InputError(
            "design",
            got=f"terms with the same value in every row ({listed}{', ...' if len(constant) > 10 else ''})",
            expected="terms that vary",
            fix="Leave them out; the intercept takes their place.",
        )


def _check_rank(gram: np.ndarray, labels: Sequence[str], num_rows: float) -> None:
    if not labels:
        return
    values, vectors = np.linalg.eigh(gram)
    if values[0] > SMALLEST_EIGENVALUE:
        return
    weights = np.abs(vectors[:, values <= SMALLEST_EIGENVALUE]).max(axis=1)
    involved = [label for label, weight in zip(labels, weights, strict=True) if weight > 1e-3]
    raise InputError(
        "design",
        got=f"linearly dependent terms {', '.join(involved[:10])}{', ...' if len(involved) > 10 else ''}"
        f" ({num_rows:.0f} rows, {len(labels)} columns)",
        expected="terms of which none is a combination of the others",
        fix="Leave one of them out, or merge levels.",
    )
