"""Everything that can be exchanged, by name: one line for each entry.

The command line lists it, errors name alternatives from it, and the tests run each entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coreset_mcmc import kernels, methods, models
from coreset_mcmc.core.types import Position
from coreset_mcmc.data import selection
from coreset_mcmc.methods.coreset_mcmc import minibatch, optimizers, projections
from coreset_mcmc.models.model import Model

KERNELS: Mapping[str, Callable[..., Any]] = {
    "blackjax": kernels.from_blackjax,
    "gaussian-autoregression": kernels.GaussianAutoregression,
    "hit-and-run-slice": kernels.HitAndRunSlice,
    "mixed-slice": kernels.MixedSlice,
    "random-walk": kernels.RandomWalk,
    "spike-and-slab-gibbs": kernels.SpikeAndSlabGibbs,
    "univariate-slice": kernels.UnivariateSlice,
    "whitened-hmc": kernels.WhitenedHMC,
    "whitened-nuts": kernels.WhitenedNUTS,
}

DEFAULT_METHOD = methods.LeastSquares

METHODS: Mapping[str, type[methods.Method]] = {
    method.name: method
    for method in (
        methods.AusterityMH,
        methods.ConfidenceMH,
        methods.CoresetMCMC,
        methods.Hilbert,
        methods.ImportanceSampling,
        methods.Laplace,
        methods.LeastSquares,
        methods.NUTS,
        methods.QuasiNewton,
        methods.SGHMC,
        methods.SGLD,
        methods.SparseHamiltonianFlow,
        methods.SparseVI,
        methods.Uniform,
    )
}

MODELS: Mapping[str, Callable[..., Any]] = {
    "bradley-terry": models.bradley_terry,
    "gaussian-location": models.gaussian_location,
    "gaussian-mixture": models.gaussian_mixture,
    "hierarchical-logistic-regression": models.hierarchical_logistic_regression,
    "linear-regression": models.linear_regression,
    "logistic-regression": models.logistic_regression,
    "poisson-regression": models.poisson_regression,
    "sparse-regression": models.sparse_regression,
    "unidentified-regression": models.unidentified_regression,
}

OPTIMIZERS: Mapping[str, Callable[..., Any]] = {
    "adagrad": optimizers.AdaGrad,
    "adam": optimizers.Adam,
    "dog": optimizers.DoG,
    "dowg": optimizers.DoWG,
    "hot-dog": optimizers.HotDoG,
    "prodigy": optimizers.Prodigy,
    "sgd": optimizers.SGD,
}

FEASIBLE_SETS: Mapping[str, Callable[..., Any]] = {
    "affine": projections.Affine,
    "box": projections.Box,
    "non-negative": projections.NonNegative,
    "simplex": projections.Simplex,
}

MINIBATCHES: Mapping[str, Callable[..., Any]] = {
    "random-order-scan": minibatch.RandomOrderScan,
    "without-replacement": minibatch.WithoutReplacement,
}

SELECTIONS: Mapping[str, Callable[..., Any]] = {
    "given": selection.Given,
    "stratified": selection.Stratified,
    "uniform": selection.Uniform,
}

REGISTRY: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "methods": METHODS,
    "models": MODELS,
    "kernels": KERNELS,
    "optimizers": OPTIMIZERS,
    "feasible sets": FEASIBLE_SETS,
    "minibatches": MINIBATCHES,
    "row selections": SELECTIONS,
}


def methods_that_work(model: Model, position: Position) -> list[str]:
    """Names of the methods whose needs this model meets."""
    return [name for name, method in METHODS.items() if not method().needs.unmet(model, position)]
