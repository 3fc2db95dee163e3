"""Data sources: how rows reach compiled code."""

from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.convert import to_array_data, to_batch, to_rows
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.data.shuffle import permuted, without_replacement

__all__ = ["ArrayData", "DataSource", "permuted", "to_array_data", "to_batch", "to_rows", "without_replacement"]
