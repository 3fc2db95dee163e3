"""From a table on disk to a model: files, formulas, families and priors."""

from coreset_mcmc.tables.frames import FrameSource, FrameTable
from coreset_mcmc.tables.reading import column_names, digest, read_table
from coreset_mcmc.tables.regression import Regression, from_formula, regression

__all__ = [
    "FrameSource",
    "FrameTable",
    "Regression",
    "column_names",
    "digest",
    "from_formula",
    "read_table",
    "regression",
]
