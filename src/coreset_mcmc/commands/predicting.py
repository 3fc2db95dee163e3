"""``coreset-mcmc predict``: responses of the rows of another table, written as they come."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from coreset_mcmc.commands.budget import Budget
from coreset_mcmc.commands.opening import open_table
from coreset_mcmc.commands.paths import absolute, name_of
from coreset_mcmc.commands.runs import opened_run
from coreset_mcmc.commands.table import Table
from coreset_mcmc.core.digits import beside
from coreset_mcmc.core.errors import InputError, require, require_count
from coreset_mcmc.core.files import write_whole
from coreset_mcmc.tables.formula_check import close_to

SHOWN_ROWS = 5
SUFFIXES = (".parquet", ".csv")


def predict_run(
    console: Console,
    run: Path,
    data: Sequence[str],
    out: Path,
    *,
    draws: int,
    interval: float | None,
    seed: int,
    overwrite: bool,
) -> Path:
    """Write mean, standard deviation, median and interval of the expected and of new responses for each row."""
    _check_out(out, overwrite=overwrite)
    require_count("--draws", draws, at_least=2, fix="A few hundred are a good choice.")
    require_count("--seed", seed, at_least=0, fix="Pass a whole number, or leave it out.")
    require(
        interval is None or 0 < interval < 1,
        "--interval",
        got=interval,
        expected="a probability between 0 and 1",
        fix="For example 0.89 or 0.95.",
    )
    paths = [absolute(path) for path in data]
    table = open_table(paths)
    with opened_run(console, run) as opened, TemporaryDirectory() as folder:
        probability = opened.config.output.interval if interval is None else interval
        tail = (1.0 - probability) / 2.0
        names = opened.model.parsed.predictors
        _check_columns(table, names, name_of(paths))
        budget = Budget.of(opened.config.engine.memory_limit)
        is_held = not table.can_stream or budget.holds(table.num_bytes(names))
        rows: Any = table.frame(names) if is_held else table.scan(names, Path(folder) / "table.parquet")
        written = opened.fitted.predict(
            rows,
            draws=draws,
            quantiles=(tail, 0.5, 1.0 - tail),
            random_seed=seed,
            to=Path(folder) / "predictions.parquet",
        )
        _move(written, out)
        _print(console, written, out, name_of(paths), probability)
    return out


def _check_out(out: Path, *, overwrite: bool) -> None:
    require(
        out.suffix in SUFFIXES,
        f"--out {out}",
        got=f"the suffix {out.suffix!r}" if out.suffix else "no suffix",
        expected=" or ".join(SUFFIXES),
        fix="For example --out predictions.parquet.",
    )
    require(
        overwrite or not out.exists(),
        f"--out {out}",
        got="a file that is there already",
        expected="a new name",
        fix="Choose another one, or pass --overwrite.",
    )
    require(
        out.absolute().parent.is_dir() and not out.is_dir(),
        f"--out {out}",
        got="a place that is not there" if not out.is_dir() else "a folder",
        expected="a file in a folder that exists",
        fix="Make the folder first.",
    )


def _check_columns(table: Table, names: Sequence[str], shown: str) -> None:
    for name in names:
        if name not in table.names:
            close = next(close_to(name, table.names), None)
            raise InputError(
                f"table {shown}",
                got=f"no column {name!r}",
                expected=f"the predictors of the formula: {', '.join(names[:20])}",
                fix=f"Rename {close!r} if that is meant." if close else "Add that column.",
            )


def _move(written: Path, out: Path) -> None:
    """To its place, as text if its name says so: whole, or not at all."""
    write_whole(out, lambda place: (_as_text if out.suffix == ".csv" else shutil.copyfile)(written, place))


def _as_text(written: Path, place: Path) -> None:
    from pyarrow import csv, parquet  # noqa: PLC0415 - heavy

    with parquet.ParquetFile(written) as file, csv.CSVWriter(place, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


def _print(console: Console, written: Path, out: Path, shown: str, interval: float) -> None:
    """The first rows, and where the others are."""
    from pyarrow import parquet  # noqa: PLC0415 - heavy

    with parquet.ParquetFile(written) as file:
        num_rows, names = file.metadata.num_rows, file.schema_arrow.names
        first = next(file.iter_batches(SHOWN_ROWS)).to_pydict()
    response = next(name.removesuffix("_expected_mean") for name in names if name.endswith("_expected_mean"))
    low, _, high = (name for name in names if name.startswith(f"{response}_q"))
    table = Shown(title=f"{escape(response)} of {escape(shown)}", title_justify="left")
    table.add_column("row", justify="right", no_wrap=True)
    for heading in ("expected", f"{interval:.0%} from", "to", "new: from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, row in enumerate(first["row"]):
        spread = first[f"{response}_expected_sd"][place]
        cells = [
            first[f"{response}_expected_{name}"][place]
            for name in ("mean", low.rpartition("_")[2], high.rpartition("_")[2])
        ]
        new = [first[name][place] for name in (low, high)]
        wide = first[f"{response}_sd"][place]
        table.add_row(str(row), *(beside(cell, spread) for cell in cells), *(beside(cell, wide) for cell in new))
    console.print(table)
    more = f"{num_rows - len(first['row']):,} more rows, and " if num_rows > len(first["row"]) else ""
    console.print(f"{more}all columns ({', '.join(escape(name) for name in names[:3])}, ...) in {escape(str(out))}")
