"""How far draws are from a reference posterior, and how many they are worth. Arrays in, numbers out.

The two-moment KL, the relative errors, the Jensen-Shannon divergence over joint patterns and the effective sample size
per second are those of section 4 and appendix C of the paper. Effective sample sizes are ArviZ's rank-normalised
"bulk" ones (Vehtari et al. 2021) over all lags; the paper's library stops at lag 250, which flatters slow chains.

Draws are ``(draw, d)`` or ``(chain, draw, d)``; moments pool the chains, effective sample sizes keep them apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import rel_entr

from coreset_mcmc.core.errors import InputError, require

PRECISION = float(np.finfo(float).eps)


def two_moment_kl(draws: ArrayLike, reference_mean: ArrayLike, reference_covariance: ArrayLike) -> float:
    """KL(N(m, C) || N(mu, Sigma)) from the moments m, C of the draws to those of the reference.

    With Cholesky factors C = F F' and Sigma = G G', and A = G^-1 F, which is triangular, it is
    ``(sum A_ij^2 - d - sum log A_ii^2 + |G^-1 (m - mu)|^2) / 2``. It is +inf if C is not positive definite to working
    precision, as when there are no more draws than coordinates.
    """
    pooled = _pooled(draws)
    num_draws, dimension = pooled.shape
    reference_mean = _reference_mean(reference_mean, dimension)
    reference_factor = _reference_factor(_reference_covariance(reference_covariance, dimension))
    if num_draws <= dimension:
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        mean, centred = _centred(pooled)
        factor = _sample_factor(centred, np.abs(pooled).max(axis=0))
    if factor is None:
        return math.inf
    relative = solve_triangular(reference_factor, factor, lower=True)
    gap = solve_triangular(reference_factor, mean - reference_mean, lower=True)
    log_squares = 2.0 * np.log(np.diagonal(relative))
    below_diagonal = np.sum(np.tril(relative, -1) ** 2)
    value = 0.5 * (np.sum(np.expm1(log_squares) - log_squares) + below_diagonal + gap @ gap)
    return max(float(value), 0.0)


def two_moment_kl_floor(dimension: int, num_draws: float) -> float:
    """d (d + 3) / (4 n): what n independent draws of the reference itself would score. Pass the ESS for a chain."""
    _require_positive("dimension", dimension)
    _require_positive("num_draws", num_draws)
    return dimension * (dimension + 3.0) / (4.0 * num_draws)


def relative_mean_error(draws: ArrayLike, reference_mean: ArrayLike) -> float:
    """|m - mu| / |mu| in the Euclidean norm."""
    pooled = _pooled(draws)
    mean = _reference_mean(reference_mean, pooled.shape[1])
    return _relative_error(pooled.mean(axis=0), mean, "reference_mean")


def relative_covariance_error(draws: ArrayLike, reference_covariance: ArrayLike) -> float:
    """|C - Sigma| / |Sigma| in the Frobenius norm, C with n - 1 in the denominator."""
    pooled = _pooled(draws)
    covariance = _reference_covariance(reference_covariance, pooled.shape[1])
    require(
        len(pooled) > 1,
        "draws",
        got="a single draw",
        expected="at least two draws",
        fix="A covariance needs more than one draw.",
    )
    return _relative_error(np.atleast_2d(np.cov(pooled, rowvar=False)), covariance, "reference_covariance")


def jensen_shannon(draws: ArrayLike, reference_draws: ArrayLike) -> float:
    """Jensen-Shannon divergence between the empirical distributions of discrete vectors, in nats, at most log 2.

    A vector counts as one joint pattern: two samples with equal marginals but other dependences differ.
    """
    first, second = _pooled(draws), _pooled(reference_draws, "reference_draws")
    for subject, values in (("draws", first), ("reference_draws", second)):
        require(
            bool(np.all(values == np.floor(values))),
            subject,
            got="values that are not whole numbers",
            expected="discrete vectors",
            fix="Pass the discrete coordinates only; use two_moment_kl for continuous ones.",
        )
    require(
        first.shape[1] == second.shape[1],
        "reference_draws",
        got=f"{second.shape[1]} coordinates",
        expected=f"{first.shape[1]}, as many as in draws",
        fix="Select the same coordinates of both.",
    )
    patterns, membership = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)
    membership = membership.reshape(-1)
    p = np.bincount(membership[: len(first)], minlength=len(patterns)) / len(first)
    q = np.bincount(membership[len(first) :], minlength=len(patterns)) / len(second)
    mixture = 0.5 * (p + q)
    value = 0.5 * float(np.sum(rel_entr(p, mixture)) + np.sum(rel_entr(q, mixture)))
    return min(max(value, 0.0), math.log(2.0))


def jensen_shannon_floor(num_patterns: int, num_draws: float, num_reference_draws: float) -> float:
    """(patterns - 1) (1/n + 1/n') / 8: what two independent samples of one distribution would score."""
    _require_positive("num_patterns", num_patterns)
    _require_positive("num_draws", num_draws)
    _require_positive("num_reference_draws", num_reference_draws)
    return (num_patterns - 1.0) / 8.0 * (1.0 / num_draws + 1.0 / num_reference_draws)


def bulk_ess(draws: ArrayLike) -> np.ndarray:
    """Bulk effective sample size (d,) of each coordinate of draws ``(chain, draw, d)``; NaN where all are equal."""
    values = _finite(draws, "draws")
    require(
        values.ndim == 3 and values.shape[1] >= 4,
        "draws",
        got=f"shape {values.shape}",
        expected="shape (chain, draw, d) with at least 4 draws",
        fix="For one chain add an axis: draws[None].",
    )
    from arviz_stats.base.array import array_stats  # noqa: PLC0415 - takes a second

    is_constant = np.ptp(values, axis=(0, 1)) == 0.0
    sizes = np.asarray(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"), dtype=float)
    return np.where(is_constant, np.nan, sizes)


def min_bulk_ess(draws: ArrayLike) -> float:
    """The smallest :func:`bulk_ess` over coordinates; NaN if any coordinate never moved."""
    return float(np.min(bulk_ess(draws)))


def ess_per_second(draws: ArrayLike, seconds: float) -> float:
    """:func:`min_bulk_ess` per second of the kernel steps that made these draws; training is not counted."""
    _require_positive("seconds", seconds)
    return min_bulk_ess(draws) / seconds


def _finite(values: ArrayLike, subject: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            subject, got=str(error), expected="an array of numbers", fix="Flatten the position to one axis first."
        ) from error
    num_bad = int(np.count_nonzero(~np.isfinite(array)))
    require(
        num_bad == 0,
        subject,
        got=f"NaN or infinite values ({num_bad} of {array.size})",
        expected="finite values",
        fix="A chain diverged or was not filled: look at it before measuring it.",
    )
    return array


def _pooled(draws: ArrayLike, subject: str = "draws") -> np.ndarray:
    array = _finite(draws, subject)
    require(
        array.ndim in (2, 3) and array.size > 0,
        subject,
        got=f"shape {array.shape}",
        expected="shape (draw, d) or (chain, draw, d), not empty",
        fix="For a single coordinate add an axis: draws[:, None].",
    )
    return array.reshape(-1, array.shape[-1])


def _reference_mean(mean: ArrayLike, dimension: int) -> np.ndarray:
    array = _finite(mean, "reference_mean")
    require(
        array.shape == (dimension,),
        "reference_mean",
        got=f"shape {array.shape}",
        expected=f"shape ({dimension},), as the draws have {dimension} coordinates",
        fix="Select the same coordinates of the draws and of the reference.",
    )
    return array


def _reference_covariance(covariance: ArrayLike, dimension: int) -> np.ndarray:
    array = _finite(covariance, "reference_covariance")
    require(
        array.shape == (dimension, dimension),
        "reference_covariance",
        got=f"shape {array.shape}",
        expected=f"shape ({dimension}, {dimension}), as the draws have {dimension} coordinates",
        fix="Select the same coordinates of the draws and of the reference.",
    )
    scales = np.sqrt(np.abs(np.diagonal(array)))
    require(
        bool(np.all(np.abs(array - array.T) <= 1e-8 * np.outer(scales, scales))),
        "reference_covariance",
        got="an asymmetric matrix",
        expected="a symmetric one",
        fix="Pass a covariance, not one of its factors.",
    )
    return array


def _reference_factor(covariance: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError as error:
        raise InputError(
            "reference_covariance",
            got="a matrix that is not positive definite",
            expected="a positive definite covariance",
            fix="Use more reference draws, or leave out coordinates that are constant or copies of others.",
        ) from error


def _centred(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviations in two passes, so that a constant column leaves deviations below one rounding error."""
    rough = values.mean(axis=0)
    rest = (values - rough).mean(axis=0)
    return rough + rest, values - rough - rest


def _sample_factor(centred: np.ndarray, magnitudes: np.ndarray) -> np.ndarray | None:
    """The Cholesky factor of the sample covariance, or None if a squared pivot is within its rounding error.

    That error is (n + d) rounding errors of the variance, from sums of n products and d eliminations, and what is
    left of the ``magnitudes`` of the draws after centring.
    """
    num_draws, dimension = centred.shape
    covariance = centred.T @ centred / (num_draws - 1.0)
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    relative = PRECISION * (num_draws + dimension) * np.diagonal(covariance)
    rounding = np.maximum(relative, (PRECISION * magnitudes) ** 2)
    return factor if bool(np.all(np.diagonal(factor) ** 2 > rounding)) else None


def _relative_error(estimate: np.ndarray, reference: np.ndarray, subject: str) -> float:
    scale = float(np.linalg.norm(reference))
    require(
        scale > 0.0,
        subject,
        got="zero",
        expected="a reference other than zero",
        fix="An error relative to zero is undefined: use two_moment_kl.",
    )
    return float(np.linalg.norm(estimate - reference)) / scale


def _require_positive(subject: str, value: float) -> None:
    require(
        bool(np.isfinite(value) and value > 0), subject, got=value, expected="a positive number", fix="Check the units."
    )
