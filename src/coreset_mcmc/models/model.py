"""A model is two pure functions: a log-prior and a per-row log-likelihood.

``log_likelihood(position, batch)`` returns one value per row of ``batch``, so the same function serves a coreset, a
minibatch and the full data. Terms that do not depend on the position may be dropped: they cancel when the gradient
estimate (eq. 4 of the paper) centres over chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.host import HostFunction, lengths_of, try_out
from coreset_mcmc.models.in_double import in_double
from coreset_mcmc.models.notebook import model_display
from coreset_mcmc.models.regressors import Regressors


@dataclass(frozen=True)
class LinearPredictor:
    """The likelihood split into an affine predictor and what remains, for O(M) evaluation along a line.

    ``predictor(position, batch)`` must be affine in the position. Along ``position + t * direction`` it is then
    ``eta + t * slope``, and each evaluation costs one pass over the rows and no matrix product. A Hessian costs one
    product of matrices where all else would take two (:mod:`coreset_mcmc.posterior.by_predictor`), and less where
    ``regressors`` say which parameters are effects of the levels of a factor.
    """

    predictor: Callable[[Position, Batch], Any]
    log_likelihood: Callable[[Position, Any, Batch], jax.Array]
    regressors: Regressors | None = None
    """What a predictor of one number for each row is made of, beside an offset."""


@dataclass(frozen=True)
class ChangeBound:
    """A bound on how much the log-likelihood of any row changes between two positions, at O(1) for each pair.

    ``|l_n(proposal) - l_n(position)| <= bound(largest, position, proposal)`` for every row n, where ``largest`` is the
    maximum over all rows of ``row_statistic(batch) -> (B,)``, found once. Confidence MH rests on it.
    """

    row_statistic: Callable[[Batch], jax.Array]
    bound: Callable[[jax.Array, Position, Position], jax.Array]


@dataclass(frozen=True)
class SpikeAndSlab:
    """Hyper-parameters of the spike-and-slab regression (stochastic search variable selection), which Gibbs needs.

    sigma^2 ~ InvGamma(nu / 2, nu lambda / 2), gamma_i ~ Bernoulli(q), beta_i | gamma_i ~ N(0, tau^2) if gamma_i = 0 and
    N(0, (c tau)^2) if gamma_i = 1.
    """

    inclusion_probability: float = 0.1
    slab_ratio: float = 10.0
    spike_scale: float = 0.1
    variance_shape: float = 0.1
    variance_scale: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A Bayesian model for rows that are independent given the position.

    Args:
        log_prior: ``position -> ()``, the log prior density up to a constant.
        log_likelihood: ``(position, batch) -> (B,)``, one value per row; in any precision, as the log-prior.
        initial_position: a pytree, or a function ``key -> pytree`` drawn once for each chain.
        linear_predictor: optional split of the likelihood that spares slice kernels and Hessians products of matrices.
        differentiable: whether gradients with respect to the position exist.
        log_concave: whether the log-likelihood of every row is known to be concave in the position, and the prior to
            have one mode: then no modes are looked for. (A prior with heavy tails may leave a valley, but a shallow one
            that chains cross.)
        change_bound: optional bound on the change of any row's log-likelihood, for Confidence MH.
        structure: what is special about the model, for a kernel made for its kind, such as a :class:`SpikeAndSlab`;
            :mod:`coreset_mcmc.kernels.choice` finds that kernel by the type.
        check_data: optional function that raises an :class:`~coreset_mcmc.core.errors.InputError` on unsuitable data.
        dims, coords: names of the dimensions of each variable and their labels, as in ArviZ.
        constrain: ``position -> {name: array}``, everything that the group ``posterior`` shows: parameters on the scale
            of the user and quantities derived from them. It must not depend on rows. By default the position itself.
        unconstrain: ``(values, position) -> position``, the position with the user's values, some or all of those
            that ``constrain`` shows, put in; ``initvals`` go through it.
        predictive: ``(key, position, batch) -> {name: (B, ...)}``, new responses for the rows of a batch.
        expected: ``(position, batch) -> {name: (B, ...)}``, what those responses are on average, under the same names.
        new_rows: from a table with the user's own columns to rows of the form of ``data`` without responses, for a
            model that makes its rows of other columns; ``fit.predict`` takes such a table.
        table: the user's table behind the rows, for questions about its columns (:class:`.tables.what_if.WhatIf`).
        observed: which data are responses, for the group ``observed_data``: keys of the data, or a function
            ``batch -> {name: (B, ...)}``.
        data: the rows, for a model that holds its own data; ``fit(model)`` takes them.
        infinite: whether data may hold infinite values, such as bounds of rows that are not censored. Their rows must
            have finite log-likelihoods all the same.
        fixed_data: why rows of a scan cannot take the place of ``data``, in words; empty if they can.
        bind: ``batch -> Model``, for a model whose parameters are known only once the data are.
        compiled: the same densities, each up to a constant, and nothing else: what compiled steps see instead. Models
            that differ only in ``constrain``, names and data may share it, and with it the compiled programs. Whoever
            replaces a density replaces it too.
        identity: what stands for the functions in the fingerprint of a checkpoint if their code does not.
        name: how the model is called in messages and files.
    """

    log_prior: Callable[[Position], jax.Array]
    log_likelihood: Callable[[Position, Batch], jax.Array]
    initial_position: Position | Callable[[Key], Position] | None = None
    linear_predictor: LinearPredictor | None = None
    differentiable: bool = True
    log_concave: bool = False
    change_bound: ChangeBound | None = None
    structure: Any = None
    check_data: Callable[[Batch], None] | None = None
    dims: Mapping[str, tuple[str, ...]] | None = None
    coords: Mapping[str, Any] | None = None
    constrain: Callable[[Position], Mapping[str, jax.Array]] | None = None
    unconstrain: Callable[[Mapping[str, Any], Position], Position] | None = None
    predictive: Callable[[Key, Position, Batch], Mapping[str, jax.Array]] | None = None
    expected: Callable[[Position, Batch], Mapping[str, jax.Array]] | None = None
    new_rows: Callable[[Any], Any] | None = None
    table: Any = None
    observed: tuple[str, ...] | Callable[[Batch], Mapping[str, Any]] = ()
    data: Any = None
    infinite: bool = False
    fixed_data: str = ""
    bind: Callable[[Batch], Model] | None = None
    compiled: Model | None = None
    identity: Any = None
    name: str = "model"

    def __post_init__(self) -> None:
        for subject, function in (("log_prior", self.log_prior), ("log_likelihood", self.log_likelihood)):
            require(
                callable(function),
                f"Model {subject}",
                got=type(function).__name__,
                expected="a function",
                fix="Pass log_prior(position) and log_likelihood(position, batch).",
            )
        for name in ("log_prior", "log_likelihood"):
            if not isinstance(getattr(self, name), HostFunction):
                object.__setattr__(self, name, in_double(getattr(self, name)))
        require(
            self.compiled is None or self.compiled.log_prior == self.log_prior,
            "Model compiled",
            got="another log_prior than that of the model",
            expected="the same densities",
            fix="Pass compiled=None where a density is replaced.",
        )

    def __repr__(self) -> str:
        """Short, whatever data it holds."""
        leaves = jax.tree.leaves(self.data, is_leaf=lambda part: hasattr(part, "size") and not hasattr(part, "shape"))
        rows = "" if not leaves else f", {np.shape(leaves[0])[0] if np.ndim(leaves[0]) else leaves[0].size:,} rows"
        return f"Model({self.name!r}{rows})"

    def _repr_html_(self) -> str:
        return model_display(self)

    @classmethod
    def from_linear_predictor(
        cls,
        log_prior: Callable[[Position], jax.Array],
        predictor: Callable[[Position, Batch], Any],
        log_likelihood: Callable[[Position, Any, Batch], jax.Array],
        *,
        regressors: Regressors | None = None,
        **options: Any,
    ) -> Model:
        """Build a model whose likelihood depends on an affine ``predictor(position, batch)``.

        ``log_likelihood(position, predicted, batch)`` may still read the position, for scale parameters and the like.
        ``regressors``, if they are given, say what the predictor is made of.
        """

        def whole_log_likelihood(position: Position, batch: Batch) -> jax.Array:
            return log_likelihood(position, predictor(position, batch), batch)

        split = LinearPredictor(predictor, in_double(log_likelihood), regressors)
        return cls(log_prior, whole_log_likelihood, linear_predictor=split, **options)

    @classmethod
    def from_callable(
        cls,
        log_prior: Callable[[Position], Any],
        log_likelihood: Callable[[Position, Batch], Any],
        initial_position: Position | Callable[[Key], Position],
        *,
        vectorized: bool = False,
        smooth: bool | None = None,
        **options: Any,
    ) -> Model:
        """Build a model from functions in NumPy or SciPy, whose derivatives are taken by differences.

        Args:
            log_prior: ``position -> number``; minus infinity outside the support.
            log_likelihood: ``(position, rows) -> (B,)``, one value for each row, vectorised over rows.
            initial_position: as for :class:`Model`.
            vectorized: whether both functions take many positions at once, with a leading axis on each leaf of the
                position, and return (K,) and (K, B).
            smooth: whether the log-likelihood has derivatives. By default that is tried out on a few rows. Without
                them, and with whole numbers among the parameters, training and sampling do without; with more than 20
                parameters, too.
            options: other arguments of :class:`Model`, such as ``dims`` and ``name``.
        """
        prior = HostFunction(log_prior, vectorized, "log_prior(position)")
        likelihood = HostFunction(log_likelihood, vectorized, "log_likelihood(position, rows)")
        settings = {"name": "black box", **options, "differentiable": False}
        model = cls(prior, likelihood, initial_position, **settings)

        def tried(batch: Batch) -> Model:
            try_out(prior, likelihood, initial_position, batch)
            lengths = lengths_of(prior, likelihood, initial_position, batch, smooth=smooth)
            if not lengths:
                return model
            smooth_prior, smooth_likelihood = replace(prior, lengths=lengths), replace(likelihood, lengths=lengths)
            return cls(smooth_prior, smooth_likelihood, initial_position, **{**settings, "differentiable": True})

        return replace(model, bind=tried)
