"""Bayesian coresets by Markov chain Monte Carlo.

A coreset is a small weighted subset of rows whose posterior stands in for the full one. ``fit`` goes from a model and
data to draws; the modules below hold the parts that can be exchanged.
"""

from importlib.metadata import version

from coreset_mcmc.core import quiet_compiler  # noqa: F401 # isort: skip - before anything that imports JAX
from coreset_mcmc import extend, kernels, models
from coreset_mcmc.core.errors import CheckpointError, InputError, RunError
from coreset_mcmc.core.program_cache import cache
from coreset_mcmc.data import selection
from coreset_mcmc.diagnostics import metrics
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.engines.dask_engine import Dask
from coreset_mcmc.engines.dask_frame import source_from_dask
from coreset_mcmc.engines.ray_engine import Ray
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.interop.bambi import from_bambi
from coreset_mcmc.interop.numpyro.adapter import from_numpyro
from coreset_mcmc.interop.pymc.adapter import from_pymc
from coreset_mcmc.interop.stan.adapter import from_stan
from coreset_mcmc.kernels import from_blackjax
from coreset_mcmc.methods import (
    CoresetMCMC,
    Hilbert,
    ImportanceSampling,
    LeastSquares,
    QuasiNewton,
    SparseHamiltonianFlow,
    SparseVI,
    Uniform,
    subsampling,
)
from coreset_mcmc.methods.coreset_mcmc import optimizers
from coreset_mcmc.methods.coreset_mcmc.epochs import DoublingEpochs
from coreset_mcmc.methods.coreset_mcmc.hot_start import HotStart
from coreset_mcmc.methods.coreset_mcmc.minibatch import RandomOrderScan, WithoutReplacement
from coreset_mcmc.methods.coreset_mcmc.projections import Affine, Box, NonNegative, Simplex
from coreset_mcmc.methods.full_data import NUTS, Laplace
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH
from coreset_mcmc.models.model import ChangeBound, LinearPredictor, Model
from coreset_mcmc.results.build import load
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.scans import Scan, scan_arrow, scan_parquet
from coreset_mcmc.tables import Regression, from_formula, read_table, regression
from coreset_mcmc.verdict import Finding, Trust, trust

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
    "Dask",
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
    "Ray",
    "Regression",
    "RunError",
    "Scan",
    "Simplex",
    "SparseHamiltonianFlow",
    "SparseVI",
    "Trust",
    "Uniform",
    "WithoutReplacement",
    "__version__",
    "cache",
    "extend",
    "fit",
    "from_bambi",
    "from_blackjax",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "kernels",
    "load",
    "metrics",
    "models",
    "optimizers",
    "read_table",
    "regression",
    "scan_arrow",
    "scan_parquet",
    "selection",
    "source_from_dask",
    "subsampling",
    "trust",
]
