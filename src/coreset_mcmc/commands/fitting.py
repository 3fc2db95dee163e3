"""``coreset-mcmc fit`` and ``coreset-mcmc resume``: from a table to a folder with everything in it.

Both do the same: the configuration is written first, and what a checkpoint holds is not computed again. The random
numbers of each step follow from the seed alone, so a resumed run ends with the same bits.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.budget import AUTO, MEMORY, Budget
from coreset_mcmc.commands.checking import Checked, check
from coreset_mcmc.commands.clock import Clock
from coreset_mcmc.commands.config import Config, versions
from coreset_mcmc.commands.effects import effects_for_report, save_effects
from coreset_mcmc.commands.flags import by_flags
from coreset_mcmc.commands.folder import (
    COMPLETE,
    INTERRUPTED,
    RunFolder,
    empty_if_refused,
    locked,
    new_folder,
    remove_parts,
    writing,
)
from coreset_mcmc.commands.methods import check_method, method_of
from coreset_mcmc.commands.reading import OpenTable, engine_of, opened
from coreset_mcmc.commands.reporting import draw_report
from coreset_mcmc.commands.same_files import check_identity
from coreset_mcmc.commands.summary import summary_of, to_json
from coreset_mcmc.commands.telling import print_plan, print_result, print_way_on
from coreset_mcmc.commands.terminal import announced
from coreset_mcmc.core.memory import limited_to
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.report import require_installed
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.term_table import term_path
from coreset_mcmc.tables import Regression


def fit_table(console: Console, config: Config, out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """A new run; the summary that it leaves."""
    clock = Clock()
    with _checked(console, config):
        table = opened(console, config).identified(console)
        seed = config.sampling.seed if config.sampling.seed is not None else secrets.randbits(32)
        config = replace(table.config.changed("sampling", seed=seed), made_with=versions())
        table = replace(table, config=config)
        with engine_of(config) as engine:
            if table.converts:
                folder = new_folder(out, config, overwrite=overwrite)
                with locked(folder):
                    with empty_if_refused(folder), _resumable(console, folder):
                        model = _regression(console, table, folder, engine)
                    return _carry_out(console, table, folder, model, engine, clock)
            model = _regression(console, table, RunFolder(out), engine)
            folder = new_folder(out, config, overwrite=overwrite)
            with locked(folder):
                return _carry_out(console, table, folder, model, engine, clock)


def resume(console: Console, path: Path, *, scheduler: str | None = None) -> dict[str, Any]:
    """Go on with a run that was stopped, however it was stopped; a cluster may have another address by now."""
    clock = Clock()
    folder = RunFolder(path)
    config = folder.config()
    summary = folder.summary()
    if summary is not None and folder.is_complete:
        console.print(f"{escape(str(path))} is finished; there is nothing to do.")
        return summary
    is_older = config.engine.name == AUTO
    config = config.changed("engine", scheduler=scheduler, name=MEMORY if is_older else None)
    with _checked(console, config):
        table = opened(console, config)
        check_identity(config, table.identified(console).config.data)
        if config.made_with != versions():
            console.print("[yellow]The run began with other versions of the software: its bits may differ.[/yellow]")
        with locked(folder), engine_of(config) as engine:
            remove_parts(folder)
            with _resumable(console, folder):
                model = _regression(console, table, folder, engine)
            return _carry_out(console, table, folder, model, engine, clock)


@contextmanager
def _checked(console: Console, config: Config) -> Iterator[None]:
    """Refuse what cannot be run; show how far passes over the rows are, within the memory that may be used."""
    config.check()
    if config.output.report:
        require_installed()
    check_method(config)
    with show_passes(True, console), limited_to(Budget.of(config.engine.memory_limit).limit):
        yield


@contextmanager
def _resumable(console: Console, folder: RunFolder) -> Iterator[None]:
    """Whoever stops a run is told how to go on with it."""
    try:
        yield
    except KeyboardInterrupt:
        print_way_on(console, folder)
        raise


def _regression(console: Console, table: OpenTable, folder: RunFolder, engine: Engine | None) -> Regression:
    with writing(folder):
        return table.regression(console, folder.table, engine)


def _carry_out(
    console: Console, table: OpenTable, folder: RunFolder, model: Regression, engine: Engine | None, clock: Clock
) -> dict[str, Any]:
    config = table.config
    clock.mark("reading")
    print_plan(console, config, model)
    with writing(folder), _resumable(console, folder):
        folder.checkpoint.mkdir(exist_ok=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            fitted = _fit(table, folder, model, engine)
        warned = [by_flags(str(warning.message)) for warning in caught if warning.category is UserWarning]
        warned = [message for message in warned if "hardly pays" not in message]
        folder.write(folder.draws, fitted.save)
        with announced(console, "Reading the rows of the coreset ..."):
            rows = coreset_rows(fitted, model)
        if rows is not None:
            folder.write(folder.coreset, lambda place: rows.to_csv(place, index=False))
        if fitted.has_term:
            table_of_term = fitted.coreset.term_frame()
            folder.write(term_path(folder.coreset), lambda place: table_of_term.to_csv(place, index=False))
        clock.mark("fitting")
        checked = check(console, config, folder, fitted, model.response, is_in_memory=table.is_in_memory)
        clock.mark("checking")
        if config.output.report and not checked.is_interrupted:
            save_effects(folder, effects_for_report(fitted, model.parsed.predictors, config.output.interval))
        summary = _summary(config, fitted, model, checked, warned)
        if config.output.report:
            with announced(console, "Drawing the report ..."):
                draw_report(folder, summary)
        clock.mark("report")
        summary["cost"] |= {"total_seconds": clock.seconds, "seconds_by_part": clock.parts}
        folder.write_text(folder.summary_file, to_json(summary))
    print_result(console, folder, summary, clock)
    return summary


def _summary(config: Config, fitted: Fit, model: Regression, checked: Checked, warned: list[str]) -> dict[str, Any]:
    return summary_of(
        fitted,
        status=INTERRUPTED if checked.is_interrupted else COMPLETE,
        interval=config.output.interval,
        trust=checked.trust.to_dict() if checked.trust else None,
        notes=model.notes,
        warned=warned,
        settings={**config.for_people(), "made_with": versions(), "priors_used": model.priors},
    )


def _fit(table: OpenTable, folder: RunFolder, model: Regression, engine: Engine | None) -> Fit:
    config = table.config
    sampling = config.sampling
    size: Any = config.coreset.size
    return fit(
        model.model,
        model.data if table.is_in_memory else Rows(model.source, engine),
        coreset_size=size,
        kl_target=config.coreset.kl_target,
        draws=sampling.draws,
        tune=sampling.tune,
        chains=sampling.chains,
        random_seed=sampling.seed,
        method=method_of(config),
        var_names=list(model.priors),
        progressbar=True,
        checkpoint=folder.checkpoint,
    )


def coreset_rows(fitted: Fit, model: Regression) -> pd.DataFrame | None:
    """The rows with the user's own columns, heaviest first; our two columns give way to columns of the same name."""
    if not fitted.has_coreset:
        return None
    coreset = fitted.coreset
    rows = model.table_rows(coreset.indices)
    ours = {_free_name("row", rows): rows.index.to_numpy(), _free_name("weight", rows): coreset.weights}
    table = pd.concat([pd.DataFrame(ours), rows.reset_index(drop=True)], axis=1)
    result: pd.DataFrame | None = table.iloc[np.argsort(-coreset.weights, kind="stable")].reset_index(drop=True)
    return result


def _free_name(name: str, frame: pd.DataFrame) -> str:
    while name in frame.columns:
        name = f"coreset_{name}"
    return name
