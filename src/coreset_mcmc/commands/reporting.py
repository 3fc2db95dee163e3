"""``coreset-mcmc report``: the page of a run, from the files that the run left.

Drawing takes nothing but the folder, so a page can be drawn again where the data are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.commands.folder import INTERRUPTED, RunFolder, writing
from coreset_mcmc.commands.paths import name_of
from coreset_mcmc.core.errors import require
from coreset_mcmc.core.plain import strict_json
from coreset_mcmc.report import Content, PredictiveCheck, require_installed, write_report
from coreset_mcmc.results.build import load
from coreset_mcmc.results.effects import Effect
from coreset_mcmc.verdict import Trust


def redraw(path: Path) -> Path:
    """The page of a run that has draws."""
    folder = RunFolder(path)
    folder.config()
    summary = folder.summary()
    require(
        summary is not None and folder.draws.exists(),
        str(path),
        got="a run without draws",
        expected="a run that has come to its end, or was interrupted after its first draws",
        fix=f"coreset-mcmc resume {path} goes on with it.",
    )
    assert summary is not None
    require_installed()
    with writing(folder):
        return draw_report(folder, summary)


def draw_report(folder: RunFolder, summary: Mapping[str, Any]) -> Path:
    """Write the page."""
    settings = summary["settings"]
    fitted = load(folder.draws)
    num_rows = fitted.coreset.num_rows if fitted.has_coreset else None
    size = f", {num_rows:,} rows" if num_rows else ""
    content = Content(
        title=settings["model"]["formula"],
        subtitle=f"{settings['model']['family']} regression on {name_of(_paths(settings))}{size}",
        fit=fitted,
        trust=Trust.from_dict(summary["trust"]) if summary["trust"] else None,
        rows=pd.read_csv(folder.coreset) if folder.coreset.exists() else None,
        predictive=load_predictive(folder),
        effects=load_effects(folder),
        settings=settings,
        notes=[*summary["warnings"], *summary["notes"]],
        is_partial=summary["status"] == INTERRUPTED,
    )
    return folder.write(folder.report, lambda place: write_report(content, place))


def _paths(settings: Mapping[str, Any]) -> list[str]:
    path = settings["data"]["path"]
    return [path] if isinstance(path, str) else list(path)


def save_predictive(folder: RunFolder, check: PredictiveCheck) -> None:
    """The few numbers behind the picture of the posterior predictive check."""
    folder.write_text(folder.predictive, strict_json(check))


def load_predictive(folder: RunFolder) -> PredictiveCheck | None:
    """Back from the file; None if the run has none."""
    if not folder.predictive.exists():
        return None
    values: dict[str, Any] = json.loads(folder.predictive.read_text(encoding="utf-8"))
    arrays: dict[str, Any] = {
        name: np.array(value, dtype=float) for name, value in values.items() if isinstance(value, list)
    }
    return PredictiveCheck(**{**values, **arrays})


def load_effects(folder: RunFolder) -> list[Effect]:
    """Those that were found so far."""
    if not folder.effects.exists():
        return []
    found: dict[str, Any] = json.loads(folder.effects.read_text(encoding="utf-8"))
    return [Effect.from_dict(values) for values in found.values()]
