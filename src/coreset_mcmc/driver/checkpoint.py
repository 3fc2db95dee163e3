"""Checkpoints: one file, written atomically, without pickle.

A checkpoint is an ``.npz`` archive of the leaves of the state and of the history, plus a JSON header with the
fingerprint of the configuration. A new file replaces the old one in a single rename, so killing the process at any
moment leaves one complete checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import CheckpointError

FORMAT = 1
HEADER = "header"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves itself.

    Args:
        path: the file; an existing one is resumed.
        seconds: least time between two saves. The end of a run is always saved.
    """

    path: Path | str
    seconds: float = 30.0


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint: leaves of named pytrees and a header."""

    header: dict[str, Any]
    trees: dict[str, list[np.ndarray]]


def fingerprint(*parts: Any) -> str:
    """A digest of everything that determines the bits of a run."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(json.dumps(describe(part), sort_keys=True).encode())
    return digest.hexdigest()


def describe(value: Any) -> Any:
    """A JSON description of settings, functions and arrays; totals of iterations are left out.

    Functions count by their code, so that editing a model is noticed. A value with an ``identity`` counts by that
    alone.
    """
    if getattr(value, "identity", None) is not None:
        description: Any = {"type": type(value).__qualname__, "identity": describe(value.identity)}
    elif is_dataclass(value) and not isinstance(value, type):
        settings = {
            field.name: describe(getattr(value, field.name))
            for field in fields(value)
            if field.name != "num_iterations"
        }
        description = {"type": type(value).__qualname__, **settings}
    elif isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        digest = hashlib.blake2b(_bytes_of(array), digest_size=16).hexdigest()
        description = [str(array.dtype), list(array.shape), digest]
    elif isinstance(value, dict):
        description = {str(key): describe(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        description = [describe(item) for item in value]
    elif isinstance(value, CellType):
        description = describe(value.cell_contents)
    elif isinstance(value, FunctionType):
        closure = describe(value.__closure__ or ())
        description = [value.__module__, value.__qualname__, _code_digest(value.__code__), closure]
    else:
        description = value if isinstance(value, str | int | float | None) else repr(value)
    return description


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")


def _code_digest(code: Any) -> str:
    constants = [_code_digest(item) if hasattr(item, "co_code") else repr(item) for item in code.co_consts]
    return hashlib.blake2b(code.co_code + repr((constants, code.co_names)).encode(), digest_size=16).hexdigest()


def save(path: Path | str, snapshot: Snapshot) -> None:
    """Write to a neighbouring temporary file, flush it to disk, then rename."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{name}/{number}": leaf for name, leaves in snapshot.trees.items() for number, leaf in enumerate(leaves)}
    header = np.frombuffer(json.dumps({"format": FORMAT, **snapshot.header}).encode(), dtype=np.uint8)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, allow_pickle=False, **{HEADER: header, **arrays})
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: Path | str, *, expected_fingerprint: str) -> Snapshot:
    """Read a checkpoint; refuse another configuration."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(archive[HEADER].tobytes())
            arrays = {name: archive[name] for name in archive.files if name != HEADER}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise CheckpointError(
            f"checkpoint {path}: got an unreadable file ({error}); expected one that this package wrote. "
            "Delete it to start over."
        ) from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"checkpoint {path}: got format {header.get('format')}; expected {FORMAT}. Delete it to start over."
        )
    if header["fingerprint"] != expected_fingerprint:
        raise CheckpointError(
            f"checkpoint {path}: got one of another configuration (fingerprint {header['fingerprint']}); expected "
            f"{expected_fingerprint}. Model, data, settings and random_seed must be the same; only the number of "
            "iterations or draws may grow. Use another path, or delete the file to start over."
        )
    trees: dict[str, list[np.ndarray]] = {}
    for name in sorted(arrays, key=lambda name: (name.split("/")[0], int(name.split("/")[1]))):
        trees.setdefault(name.split("/")[0], []).append(arrays[name])
    return Snapshot(header, trees)
