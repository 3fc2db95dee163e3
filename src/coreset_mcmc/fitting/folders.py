"""Folders of checkpoints inside the user's, for fits that are tried in turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coreset_mcmc.driver.checkpoint import Checkpoint


def inside(checkpoint: Checkpoint | Path | str | None, name: str) -> Checkpoint | Path | None:
    """The same checkpoint in a folder of its own."""
    if checkpoint is None:
        return None
    if isinstance(checkpoint, Checkpoint):
        return replace(checkpoint, path=Path(checkpoint.path) / name)
    return Path(checkpoint) / name
