"""What ``import coreset_mcmc`` offers, and where it is."""

from . import extend, kernels, models
from .core.errors import CheckpointError, InputError, RunError
from .core.program_cache import cache
from .data import selection
from .diagnostics import metrics
from .driver.checkpoint import Checkpoint
from .driver.cost import Cost
from .engines.dask_engine import Dask
from .engines.dask_frame import source_from_dask
from .engines.ray_engine import Ray
from .fitting.fit import fit
from .interop.bambi import from_bambi
from .interop.numpyro.adapter import from_numpyro
from .interop.pymc.adapter import from_pymc
from .interop.stan.adapter import from_stan
from .kernels import from_blackjax
from .methods import (
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
from .methods.coreset_mcmc import optimizers
from .methods.coreset_mcmc.epochs import DoublingEpochs
from .methods.coreset_mcmc.hot_start import HotStart
from .methods.coreset_mcmc.minibatch import RandomOrderScan, WithoutReplacement
from .methods.coreset_mcmc.projections import Affine, Box, NonNegative, Simplex
from .methods.full_data import NUTS, Laplace
from .methods.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH
from .models.model import ChangeBound, LinearPredictor, Model
from .results.build import load
from .results.coreset import Coreset
from .results.fit import Fit
from .scans import Scan, scan_arrow, scan_parquet
from .tables import Regression, from_formula, read_table, regression
from .verdict import Finding, Trust, trust

__version__: str

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
