"""Checkpoints: one file, written atomically, without pickle.

A checkpoint is an ``.npz`` archive of the leaves of the state and of the history, plus a JSON header with the
fingerprint of the configuration. A new file replaces the old one in a single rename, so killing the process at any
moment leaves one complete checkpoint.
"""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import CheckpointError
from coreset_mcmc.core.files import write_whole

FORMAT = 1
HEADER = "header"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves itself.

    Args:
        path: the file; an existing one is resumed.
        seconds: least time between two saves. The end of a run is always saved.
        every_row: tell the data from others by the bytes of every row; otherwise by their number, their types and a
            sample of them (for files by names, sizes, times and footers), which takes no pass over the rows.
    """

    path: Path | str
    seconds: float = 30.0
    every_row: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint: leaves of named pytrees and a header."""

    header: dict[str, Any]
    trees: dict[str, list[np.ndarray]]


def save(path: Path | str, snapshot: Snapshot) -> None:
    """Write a checkpoint in place of the last one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{name}/{number}": leaf for name, leaves in snapshot.trees.items() for number, leaf in enumerate(leaves)}
    header = np.frombuffer(json.dumps({"format": FORMAT, **snapshot.header}).encode(), dtype=np.uint8)

    def write(place: Path) -> None:
        with place.open("wb") as file:
            np.savez(file, allow_pickle=False, **{HEADER: header, **arrays})

    write_whole(path, write)


def check_sizes(path: Path | str) -> None:
    """Refuse an archive whose arrays claim more than it holds, before memory is set aside for them."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(file)
                if math.prod(shape) * kind.itemsize > Path(path).stat().st_size:
                    raise ValueError(f"{member.filename} claims the shape {shape}")


def load(path: Path | str, *, expected_fingerprint: str) -> Snapshot:
    """Read a checkpoint; refuse another configuration."""
    try:
        check_sizes(path)
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(archive[HEADER].tobytes())
            arrays = {name: archive[name] for name in archive.files if name != HEADER}
        places = {name: (name.split("/")[0], int(name.split("/")[1])) for name in arrays}
        header["fingerprint"]
    except MemoryError:
        raise
    except Exception as error:  # whatever libraries say about a file that is damaged
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
    for name, (tree, _) in sorted(places.items(), key=lambda item: item[1]):
        trees.setdefault(tree, []).append(arrays[name])
    return Snapshot(header, trees)
