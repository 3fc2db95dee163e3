"""Bayesian coresets by Markov chain Monte Carlo.

A coreset is a small weighted subset of rows whose posterior stands in for the full one. ``fit`` goes from a model and
data to draws; the modules below hold the parts that can be exchanged.
"""

from importlib.metadata import version

from coreset_mcmc import kernels, metrics, models, selection, subsampling
from coreset_mcmc.checkpoint import Checkpoint
from coreset_mcmc.coreset import Coreset
from coreset_mcmc.coresets import (
    CoresetMCMC,
    Hilbert,
    ImportanceSampling,
    LeastSquares,
    QuasiNewton,
    SparseHamiltonianFlow,
    SparseVI,
    Uniform,
)
from coreset_mcmc.errors import CheckpointError, InputError, RunError
from coreset_mcmc.fit import fit
from coreset_mcmc.interop.bambi import from_bambi
from coreset_mcmc.interop.numpyro import from_numpyro
from coreset_mcmc.interop.pymc import from_pymc
from coreset_mcmc.kernels import from_blackjax
from coreset_mcmc.model import ChangeBound, LinearPredictor, Model
from coreset_mcmc.references import NUTS, Laplace
from coreset_mcmc.result import Cost, Fit, load
from coreset_mcmc.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH
from coreset_mcmc.tables import Regression, from_formula, read_table, regression
from coreset_mcmc.trust import Finding, Trust, trust
from coreset_mcmc.weights import optimizers
from coreset_mcmc.weights.epochs import DoublingEpochs
from coreset_mcmc.weights.hot_start import HotStart
from coreset_mcmc.weights.minibatch import RandomOrderScan, WithoutReplacement
from coreset_mcmc.weights.projections import Affine, Box, NonNegative, Simplex

__version__ = version("coreset-mcmc")

__all__ = [
    "NUTS",
    "SGHMC",
    "SGLD",
    "Affine",
    "AusterityMH",
    "Box",
    "ChangeBound",
    "Checkpoint",
    "CheckpointError",
    "ConfidenceMH",
    "Coreset",
    "CoresetMCMC",
    "Cost",
    "DoublingEpochs",
    "Finding",
    "Fit",
    "Hilbert",
    "HotStart",
    "ImportanceSampling",
    "InputError",
    "Laplace",
    "LeastSquares",
    "LinearPredictor",
    "Model",
    "NonNegative",
    "QuasiNewton",
    "RandomOrderScan",
    "Regression",
    "RunError",
    "Simplex",
    "SparseHamiltonianFlow",
    "SparseVI",
    "Trust",
    "Uniform",
    "WithoutReplacement",
    "__version__",
    "fit",
    "from_bambi",
    "from_blackjax",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "kernels",
    "load",
    "metrics",
    "models",
    "optimizers",
    "read_table",
    "regression",
    "selection",
    "subsampling",
    "trust",
]
