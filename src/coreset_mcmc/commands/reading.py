"""From the configuration to a regression: which engine passes over the rows, and what is read by whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.budget import AUTO, DASK, MEMORY, RAY, STREAM, Budget, in_words, require_held
from coreset_mcmc.commands.config import Config
from coreset_mcmc.commands.opening import open_table
from coreset_mcmc.commands.paths import absolute
from coreset_mcmc.commands.table import Table
from coreset_mcmc.commands.terminal import announced
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.engines.dask_engine import Dask
from coreset_mcmc.engines.ray_engine import Ray
from coreset_mcmc.tables import Regression, regression
from coreset_mcmc.tables.request import Request

STARTING = {
    DASK: 'Start one: "dask scheduler", and "dask worker ADDRESS" on each machine.',
    RAY: 'Start one: "ray start --head", and "ray start --address ADDRESS" on each other machine.',
}


@dataclass(frozen=True)
class OpenTable:
    """A table of which nothing is read but names and sizes, and the configuration that knows its engine."""

    table: Table
    columns: Sequence[str]
    config: Config

    @property
    def is_in_memory(self) -> bool:
        return self.config.engine.name == MEMORY

    @property
    def converts(self) -> bool:
        """Whether a folder for the converted table is needed before anything else."""
        return self.table.converts and not self.is_in_memory

    def identified(self, console: Console) -> OpenTable:
        """The same with a configuration that tells the table from others."""
        with announced(console, f"Reading {self.table.name} ..."):
            identity = self.table.identity(in_memory=self.is_in_memory)
        return replace(self, config=self.config.changed("data", **identity))

    def regression(self, console: Console, converted: Path, engine: Engine | None) -> Regression:
        """Read or measure the table."""
        model, data, source = self.config.model, self.config.data, self._source(console, converted)
        return regression(
            model.formula,
            source,
            family=model.family,
            link=model.link,
            priors=model.priors,
            drop_missing=data.drop_missing,
            weights=data.weights,
            trials=model.trials,
            where=data.where,
            lump_rare=data.lump_rare,
            engine=engine,
        )

    def _source(self, console: Console, converted: Path) -> Any:
        if not self.is_in_memory:
            return self.table.scan(self.columns, converted)
        with announced(console, f"Reading {self.table.name} ..."):
            return self.table.frame(self.columns)


def opened(console: Console, config: Config) -> OpenTable:
    """Find the files and choose who passes over their rows."""
    paths = [absolute(path) for path in config.data.paths]
    table = open_table(paths)
    columns = _columns(config, table.names)
    config = config.changed("data", path=paths[0] if len(paths) == 1 else paths)
    return OpenTable(table, columns, config.changed("engine", name=_engine_name(console, config, table, columns)))


def _columns(config: Config, names: Sequence[str]) -> Sequence[str]:
    """Those that are read; what can be refused without the rows is refused here."""
    model, data = config.model, config.data
    return Request.read(
        model.formula,
        names,
        model.family,
        model.link,
        weights=data.weights,
        trials=model.trials,
        where=data.where,
        lump_rare=data.lump_rare,
    ).sources


def _engine_name(console: Console, config: Config, table: Table, columns: Sequence[str]) -> str:
    name, budget = config.engine.name, Budget.of(config.engine.memory_limit)
    if name not in (AUTO, MEMORY):
        how = "streaming" if name == STREAM else f"{name} at {config.engine.scheduler}"
        size = f": {in_words(table.num_bytes(columns))} of rows" if table.can_stream else ""
        console.print(escape(how + size), highlight=False)
        return name
    num_bytes = table.num_bytes(columns)
    if name == AUTO and table.can_stream and not budget.holds(num_bytes):
        console.print(escape(f"streaming: {in_words(num_bytes)} of rows, {budget}"), highlight=False)
        return STREAM
    require_held(budget, num_bytes, can_stream=table.can_stream)
    return MEMORY


@contextmanager
def engine_of(config: Config) -> Iterator[Engine | None]:
    """Who passes over the rows; None for this process."""
    name, scheduler = config.engine.name, config.engine.scheduler
    if name in (MEMORY, STREAM):
        yield None
        return
    engine = _connected(name, scheduler)
    try:
        yield engine
    finally:
        engine.close()


def _connected(name: str, scheduler: str) -> Dask | Ray:
    try:
        return Dask(scheduler) if name == DASK else Ray(scheduler)
    except InputError as error:
        is_installed = not error.expected.startswith("the extra")
        raise InputError(
            f"--engine {name} --scheduler {scheduler}",
            got=error.got,
            expected="the address of a cluster that runs" if is_installed else error.expected,
            fix=STARTING[name] if is_installed else error.fix,
        ) from error
