"""Everything that can be exchanged, by name: one line for each entry.

The command line lists it, and the tests check that each entry has a place in their catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coreset_mcmc import kernels, models, selection
from coreset_mcmc.coresets import CoresetMCMC
from coreset_mcmc.weights import minibatch, optimizers, projections

KERNELS: Mapping[str, Callable[..., Any]] = {
    "blackjax": kernels.from_blackjax,
    "gaussian-autoregression": kernels.GaussianAutoregression,
    "hit-and-run-slice": kernels.HitAndRunSlice,
    "random-walk": kernels.RandomWalk,
    "univariate-slice": kernels.UnivariateSlice,
}

METHODS: Mapping[str, Callable[..., Any]] = {
    "coreset-mcmc": CoresetMCMC,
}

MODELS: Mapping[str, Callable[..., Any]] = {
    "gaussian-location": models.gaussian_location,
    "linear-regression": models.linear_regression,
    "logistic-regression": models.logistic_regression,
    "poisson-regression": models.poisson_regression,
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
