"""Rows on disk or in an object store, read in stretches: Parquet and Arrow files, and text on its way to Parquet."""

from coreset_mcmc.scans.csv import csv_to_parquet
from coreset_mcmc.scans.doors import scan_arrow, scan_parquet
from coreset_mcmc.scans.scan import Scan

__all__ = ["Scan", "csv_to_parquet", "scan_arrow", "scan_parquet"]
