"""A finished run, opened again with its table: for predictions, checks, effects and comparisons.

The table says what the columns of the design are, their levels and scales, so it must be there and be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from coreset_mcmc.commands.budget import Budget
from coreset_mcmc.commands.config import Config
from coreset_mcmc.commands.folder import RunFolder
from coreset_mcmc.commands.methods import method_of
from coreset_mcmc.commands.reading import OpenTable, engine_of, opened
from coreset_mcmc.commands.same_files import check_identity
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.memory import limited_to
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.results.build import load
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.tables import Regression


@dataclass(frozen=True)
class OpenRun:
    """Everything that a run has left, and what it was made of."""

    folder: RunFolder
    config: Config
    table: OpenTable
    model: Regression
    fitted: Fit
    engine: Engine | None
    summary: dict[str, Any]


def summary_of_run(folder: RunFolder) -> dict[str, Any]:
    """The numbers of a run that has draws."""
    folder.config()
    summary = folder.summary()
    require(
        summary is not None and folder.draws.exists(),
        str(folder.path),
        got="a run without draws",
        expected="a run that has come to its end, or was interrupted after its first draws",
        fix=f"coreset-mcmc resume {folder.path} goes on with it.",
    )
    assert summary is not None
    return summary


@contextmanager
def opened_run(console: Console, path: Path) -> Iterator[OpenRun]:
    """Draws with the model and the rows that they belong to."""
    folder = RunFolder(path)
    config, summary = folder.config(), summary_of_run(folder)
    with show_passes(True, console), limited_to(Budget.of(config.engine.memory_limit).limit):
        table = _same_table(console, config, path)
        with engine_of(config) as engine:
            model = table.regression(console, folder.table, engine)
            data = model.data if table.is_in_memory else Rows(model.source, engine)
            fitted = load(folder.draws, model=model.model, data=data)
            fitted = replace(fitted, recipe=_recipe(config, fitted))
            yield OpenRun(folder, config, table, model, fitted, engine, summary)


def _same_table(console: Console, config: Config, path: Path) -> OpenTable:
    try:
        table = opened(console, config)
        check_identity(config, table.identified(console).config.data)
    except InputError as error:
        raise InputError(
            f"{path} and its {error.subject}",
            got=error.got,
            expected=error.expected,
            fix="The table that a run was made of says what its columns mean: put it back where it was, as it was.",
        ) from error
    return table


def _recipe(config: Config, fitted: Fit) -> dict[str, Any] | None:
    """Options for fits like the first one."""
    if not fitted.has_coreset:
        return None
    sampling = config.sampling
    return {
        "coreset_size": fitted.coreset.size,
        "draws": sampling.draws,
        "tune": sampling.tune,
        "chains": sampling.chains,
        "method": method_of(config),
        "kernel": None,
        "selection": None,
        "initvals": None,
    }
