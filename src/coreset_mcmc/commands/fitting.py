"""``coreset-mcmc fit`` and ``coreset-mcmc resume``: from a table to a folder with everything in it.

Both do the same: the configuration is written first, and what a checkpoint holds is not computed again. The random
numbers of each step follow from the seed alone, so a resumed run ends with the same bits.
"""

from __future__ import annotations

import secrets
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.config import Config, versions
from coreset_mcmc.commands.folder import COMPLETE, INTERRUPTED, RunFolder, locked, new_folder, writing
from coreset_mcmc.commands.reporting import draw_report, save_predictive
from coreset_mcmc.commands.summary import print_parameters, print_verdict, summary_of, to_json
from coreset_mcmc.core.errors import require
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.methods.registry import METHODS
from coreset_mcmc.report import predictive_check, require_installed
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.tables import Regression, column_names, digest, read_table, regression
from coreset_mcmc.tables.formula import read_formula
from coreset_mcmc.verdict import Trust, trust


def fit_table(console: Console, config: Config, out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """A new run; the summary that it leaves."""
    config.check()
    if config.output.report:
        require_installed()
    _check_method(config)
    frame, config = _read(config)
    model = _regression(frame, config)
    seed = config.sampling.seed if config.sampling.seed is not None else secrets.randbits(32)
    config = config.changed("sampling", seed=seed)
    folder = new_folder(out, Config(**{**vars(config), "made_with": versions()}), overwrite=overwrite)
    with locked(folder):
        return _carry_out(console, config, folder, model)


def resume(console: Console, path: Path) -> dict[str, Any]:
    """Go on with a run that was stopped, however it was stopped."""
    folder = RunFolder(path)
    config = folder.config()
    summary = folder.summary()
    if summary is not None and folder.is_complete:
        console.print(f"{escape(str(path))} is finished; there is nothing to do.")
        return summary
    config.check()
    if config.output.report:
        require_installed()
    _check_method(config)
    expected = config.data.sha256
    frame, config = _read(config)
    require(
        not expected or config.data.sha256 == expected,
        f"data {config.data.path}",
        got="other bytes than the run began with",
        expected="the same file",
        fix="Bring the file back, or begin a new run with 'coreset-mcmc fit'.",
    )
    if config.made_with != versions():
        console.print("[yellow]The run began with other versions of the software: its bits may differ.[/yellow]")
    with locked(folder):
        return _carry_out(console, config, folder, _regression(frame, config))


def _check_method(config: Config) -> None:
    require(
        config.coreset.method in METHODS,
        "method",
        got=repr(config.coreset.method),
        expected=f"one of {', '.join(METHODS)}",
        fix="'coreset-mcmc list' says what each is; leave it out for the default.",
    )
    require(
        config.coreset.size is None or METHODS[config.coreset.method].uses_coreset_rows,
        f"--coreset-size {config.coreset.size}",
        got=f"the method {config.coreset.method}, which has no coreset",
        expected="a method that chooses rows",
        fix="Leave --coreset-size out, or choose another --method.",
    )


def _read(config: Config) -> tuple[pd.DataFrame, Config]:
    """The columns that the formula needs, and the configuration with the digest of the file."""
    path = Path(config.data.path).resolve()
    columns = read_formula(config.model.formula, column_names(path)).columns
    frame = read_table(path, columns)
    return frame, config.changed("data", path=str(path), sha256=digest(path))


def _regression(frame: pd.DataFrame, config: Config) -> Regression:
    model = config.model
    return regression(
        model.formula, frame, family=model.family, priors=model.priors, drop_missing=config.data.drop_missing
    )


def _carry_out(console: Console, config: Config, folder: RunFolder, model: Regression) -> dict[str, Any]:
    began = time.perf_counter()
    _print_plan(console, config, model)
    with writing(folder):
        folder.checkpoint.mkdir(exist_ok=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            fitted = _fit(config, folder, model, progressbar=console.is_terminal)
        warned = [str(warning.message) for warning in caught if warning.category is UserWarning]
        folder.write(folder.draws, fitted.save)
        rows = coreset_rows(fitted, model)
        if rows is not None:
            folder.write(folder.coreset, lambda place: rows.to_csv(place, index=False))
        judged = _judge(console, config, fitted)
        checked = predictive_check(fitted, name=model.response, seed=config.sampling.seed or 0)
        save_predictive(folder, checked)
        summary = summary_of(
            fitted,
            status=INTERRUPTED if fitted.is_interrupted else COMPLETE,
            interval=config.output.interval,
            trust=judged.to_dict() if judged else None,
            notes=model.notes,
            warned=warned,
            settings={**asdict(config), "made_with": versions(), "priors_used": model.priors},
            total_seconds=time.perf_counter() - began,
        )
        if config.output.report:
            draw_report(folder, summary)
        folder.write_text(folder.summary_file, to_json(summary))
    _print_result(console, folder, summary)
    return summary


def _fit(config: Config, folder: RunFolder, model: Regression, *, progressbar: bool) -> Fit:
    sampling = config.sampling
    size: Any = config.coreset.size
    return fit(
        model.model,
        model.data,
        coreset_size=size,
        kl_target=config.coreset.kl_target,
        draws=sampling.draws,
        tune=sampling.tune,
        chains=sampling.chains,
        random_seed=sampling.seed,
        method=METHODS[config.coreset.method](),
        var_names=list(model.priors),
        progressbar=progressbar,
        checkpoint=folder.checkpoint,
    )


def _judge(console: Console, config: Config, fitted: Fit) -> Trust | None:
    """Whether to trust it; an interrupted run is not kept waiting for that."""
    if not config.trust.check or fitted.is_interrupted:
        return None
    with console.status("Checking whether the result can be trusted ..."):
        return trust(
            fitted,
            draws=config.trust.draws,
            num_coresets=config.trust.coresets if fitted.samples_coreset else 1,
            sensitivity=config.trust.sensitivity and fitted.samples_coreset,
            random_seed=(config.sampling.seed or 0) + 1,
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


def _print_plan(console: Console, config: Config, model: Regression) -> None:
    console.print(
        f"[bold]{escape(config.model.formula)}[/bold] ({model.family}), {model.num_rows:,} rows of "
        f"{escape(Path(config.data.path).name)}, seed {config.sampling.seed}"
    )
    priors = ", ".join(f"{name} ~ {prior}" for name, prior in list(model.priors.items())[:8])
    more = f" and {len(model.priors) - 8} more" if len(model.priors) > 8 else ""
    console.print(f"Priors: {escape(priors)}{more}")
    for note in model.notes:
        console.print(escape(note))


def _print_result(console: Console, folder: RunFolder, summary: dict[str, Any]) -> None:
    print_parameters(console, summary)
    for note in summary["warnings"]:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}")
    coreset = summary["coreset"]
    if coreset is not None:
        console.print(
            f"Coreset: {coreset['size']:,} of {coreset['num_rows']:,} rows. "
            f"Work: {summary['cost']['passes_over_all_rows']:,.0f} passes over all rows, "
            f"{summary['cost']['total_seconds']:.0f} s from start to finish."
        )
    print_verdict(console, summary["trust"])
    if summary["status"] == INTERRUPTED:
        console.print(
            "[yellow]Interrupted:[/yellow] this is what the draws so far say. "
            f"'coreset-mcmc resume {escape(str(folder.path))}' goes on."
        )
    found = [path for path in (folder.report, folder.draws, folder.coreset, folder.summary_file) if path.exists()]
    console.print("Files: " + ", ".join(escape(str(path)) for path in found))
