"""``coreset-mcmc compare --loo``: which model predicts better, by leave-one-out, with standard errors.

The expected log predictive density of each row goes to a file as it comes; the files are then read side by side, so
nothing is held that grows with the number of rows. Errors of models on the same rows go together: the standard error of
a difference is that of the differences of rows, sqrt(N var(d_i)), not the sum of two.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc.commands.flags import by_flags
from coreset_mcmc.commands.runs import OpenRun, opened_run
from coreset_mcmc.core.digits import beside
from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.plain import plain

CHUNK = 65_536


@dataclass(frozen=True)
class Score:
    """Leave-one-out of a run, and how far it is behind the best one."""

    run: str
    elpd: float
    standard_error: float
    num_effective: float
    """Effective number of parameters."""
    num_bad: int
    """Rows of which the estimate is unreliable."""
    difference: float
    """To the best, at most zero."""
    difference_error: float


@dataclass(frozen=True)
class _Rows:
    """What has to be the same for two runs to be comparable."""

    response: str
    data: Any
    num_rows: int
    num_dropped: int


def compare_by_loo(console: Console, paths: Sequence[Path], draws: int) -> dict[str, Any]:
    """Print the comparison, best first, and return it as plain values."""
    require_count("--draws", draws, at_least=25, fix="A thousand are a good choice.")
    with TemporaryDirectory() as folder:
        files = {str(path): Path(folder) / f"{number}.parquet" for number, path in enumerate(paths)}
        made, rows, notes = {}, {}, []
        for path in paths:
            with opened_run(console, path) as run, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                rows[str(path)] = _rows_of(run)
                _check_same(rows)
                made[str(path)] = run.fitted.loo(draws=draws, to=files[str(path)])
            notes += [f"{path}: {by_flags(str(item.message))}" for item in caught if item.category is UserWarning]
        best = max(made, key=lambda name: made[name].elpd)
        scores = [_score(name, made[name], files[name], files[best]) for name in made]
    scores.sort(key=lambda score: -score.elpd)
    _print(console, scores, notes)
    result: dict[str, Any] = plain({"loo": [asdict(score) for score in scores], "loo_notes": notes})
    return result


def _rows_of(run: OpenRun) -> _Rows:
    data = run.config.data
    identity = data.sha256 or tuple(sorted(data.files.items()))
    return _Rows(run.model.parsed.response, identity, run.model.num_rows, run.model.num_dropped)


def _check_same(rows: dict[str, _Rows]) -> None:
    names = list(rows)
    first, last = rows[names[0]], rows[names[-1]]
    fix = "Densities of different things are not comparable; fit the models to the same rows of the same response."
    for what, one, other in (
        ("the response", first.response, last.response),
        (
            "rows",
            f"{first.num_rows:,} rows, {first.num_dropped:,} dropped",
            f"{last.num_rows:,} rows, {last.num_dropped:,} dropped",
        ),
    ):
        require(
            one == other,
            f"compare --loo {names[0]} {names[-1]}",
            got=f"{one} and {other}",
            expected=f"runs with {what} in common",
            fix=fix,
        )
    require(
        first.data == last.data,
        f"compare --loo {names[0]} {names[-1]}",
        got="runs on different tables",
        expected="the same table",
        fix=fix,
    )


def _score(name: str, loo: Any, own: Path, best: Path) -> Score:
    total = squares = 0.0
    num_rows = num_bad = 0
    for mine, other in zip(_values(own), _values(best), strict=True):
        differences = mine[0] - other[0]
        before, count = num_rows, len(differences)
        gap = differences.mean() - total / max(before, 1)
        squares += float(np.sum((differences - differences.mean()) ** 2) + gap**2 * before * count / (before + count))
        total += float(differences.sum())
        num_rows += count
        num_bad += int(np.sum(~(mine[1] <= loo.good_k)))
    error = math.sqrt(squares)
    return Score(name, float(loo.elpd), float(loo.se), float(loo.p), num_bad, total, error)


def _values(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Densities and k-hats of so many rows at a time, however the file is divided."""
    from pyarrow import parquet  # noqa: PLC0415 - heavy

    kept = np.empty((2, 0))
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(CHUNK, columns=["elpd_i", "pareto_k"]):
            kept = np.concatenate([kept, np.stack([column.to_numpy() for column in batch.columns])], axis=1)
            while kept.shape[1] >= CHUNK:
                yield kept[0, :CHUNK], kept[1, :CHUNK]
                kept = kept[:, CHUNK:]
    if kept.shape[1]:
        yield kept[0], kept[1]


def _print(console: Console, scores: Sequence[Score], notes: Sequence[str]) -> None:
    table = Table(title="Leave-one-out, best first", title_justify="left")
    table.add_column("run", overflow="fold")
    for heading in ("elpd", "its SE", "parameters", "difference", "its SE", "bad rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, score in enumerate(scores):
        behind = (
            ("", "")
            if place == 0
            else tuple(beside(value, score.difference_error) for value in (score.difference, score.difference_error))
        )
        own = (beside(value, score.standard_error) for value in (score.elpd, score.standard_error))
        table.add_row(escape(score.run), *own, f"{score.num_effective:.1f}", *behind, f"{score.num_bad:,}")
    console.print(table)
    for note in notes:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}")
    console.print("A difference of less than about two of its standard errors, or of less than 4, decides nothing.")
