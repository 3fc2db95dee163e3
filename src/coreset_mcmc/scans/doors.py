"""The front doors: ``scan_parquet`` and ``scan_arrow``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from coreset_mcmc.scans.arrow import Arrow
from coreset_mcmc.scans.columns import common_columns, wanted
from coreset_mcmc.scans.files import open_files
from coreset_mcmc.scans.footer import FileFormat
from coreset_mcmc.scans.parquet import Parquet
from coreset_mcmc.scans.scan import Scan

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Columns = Sequence[str] | Mapping[str, str | Sequence[str]]


def scan_parquet(path: Paths, columns: Columns | None = None, storage_options: Mapping[str, Any] | None = None) -> Scan:
    """Rows of Parquet files that need not fit into memory, for ``cm.fit(model, scan)``.

    Sizes and types come from the ends of the files; rows are read when they are needed, a stretch at a time.

    Args:
        path: a file, a pattern (``data/part-*.parquet``; ``**`` crosses folders), a folder, an address
            (``s3://bucket/folder``, ``gs://...``, ``file:///...``) or a list of those. Files come in natural order,
            part-2 before part-10, and the numbers of rows run on through them. In folders, files whose names begin with
            ``_`` or ``.`` and files with other suffixes are left out.
        columns: names, all by default; or a mapping from keys of a batch to a column, which becomes an array (B,), or
            to a list of columns, which becomes a matrix (B, k): ``{"x": ["x1", "x2"], "y": "y"}``.
        storage_options: options of fsspec for the address, e.g. ``{"key": ..., "secret": ...}``. Without them Arrow's
            own file systems are used, with keys from the environment and options behind a question mark:
            ``s3://bucket/folder?region=eu-west-1``.
    """
    return _scan(path, Parquet(), columns, storage_options)


def scan_arrow(path: Paths, columns: Columns | None = None, storage_options: Mapping[str, Any] | None = None) -> Scan:
    """The same for files in Arrow's own format (Arrow IPC files, Feather); see :func:`scan_parquet`."""
    return _scan(path, Arrow(), columns, storage_options)


def _scan(path: Paths, form: FileFormat, columns: Columns | None, options: Mapping[str, Any] | None) -> Scan:
    shape = wanted(columns)
    files, footers = open_files(path, form, options)
    found = common_columns(files.places.shown, footers, shape)
    scan = Scan(files, found, shape or {name: name for name in found})
    if isinstance(columns, Mapping):
        _ = scan.schema
    return scan
