"""A run as a folder: what lies in it, how it is written, and who may write.

    config.toml     everything that determines the run
    draws.nc        draws, statistics, training history (ArviZ)
    coreset.csv     the rows with their weights and original row numbers
    coreset.gaussian.csv    the Gaussian term beside them, if there is one
    summary.json    the same numbers for programs
    report.html     the same for people
    effects.json    average effects of columns, for the report
    checkpoint/     from where an unfinished run goes on
    table.parquet   a table of text that was streamed, converted

Files appear whole or not at all: each is written beside its place and moved there.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from coreset_mcmc.commands.config import CONFIG_FILE, Config, read_config, write_config
from coreset_mcmc.core.errors import InputError, RunError, require
from coreset_mcmc.core.files import write_whole

COMPLETE, INTERRUPTED = "complete", "interrupted"
OWN_FILES = (
    *(CONFIG_FILE, "draws.nc", "coreset.csv", "coreset.gaussian.csv", "summary.json", "report.html", "predictive.json"),
    "effects.json",
    *("table.parquet", "lock"),
)


class _Inside:
    """A path inside the folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, owner: type[RunFolder]) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run."""

    path: Path

    config_file = _Inside(CONFIG_FILE)
    draws = _Inside("draws.nc")
    coreset = _Inside("coreset.csv")
    summary_file = _Inside("summary.json")
    report = _Inside("report.html")
    predictive = _Inside("predictive.json")
    effects = _Inside("effects.json")
    checkpoint = _Inside("checkpoint")
    trust = _Inside("checkpoint/trust.json")
    table = _Inside("table.parquet")

    def config(self) -> Config:
        """What the run was asked to do."""
        require(
            self.config_file.is_file(),
            str(self.path),
            got="no config.toml there" if self.path.is_dir() else "no such folder",
            expected="the folder of a run",
            fix="coreset-mcmc fit ... --out FOLDER makes one.",
        )
        config = read_config(self.config_file)
        require(
            any(config.data.paths) and bool(config.model.formula.strip()),
            str(self.config_file),
            got="a file without a table or without a formula",
            expected="the whole configuration of a run",
            fix="It was damaged: begin the run again, with --overwrite if it should have the same folder.",
        )
        return config

    def summary(self) -> dict[str, Any] | None:
        """The numbers of the run; None as long as there are none."""
        if not self.summary_file.is_file():
            return None
        again = f"coreset-mcmc resume {self.path} writes it again after you delete it."
        try:
            result = json.loads(self.summary_file.read_text(encoding="utf-8"))
        except ValueError as error:
            got = f"{type(error).__name__}: {error}"
            raise InputError(str(self.summary_file), got=got, expected="the summary of a run", fix=again) from error
        is_whole = isinstance(result, dict) and result.get("status") in (COMPLETE, INTERRUPTED)
        got = "something else" if not is_whole else "that of another run" if self._is_of_another(result) else ""
        require(not got, str(self.summary_file), got=got, expected="the summary of this run", fix=again)
        summary: dict[str, Any] = result
        return summary

    def _is_of_another(self, summary: dict[str, Any]) -> bool:
        """Whether a summary contradicts the configuration that lies beside it."""
        if not self.config_file.is_file():
            return False
        asked, told = asdict(read_config(self.config_file)), summary.get("settings") or {}
        return any(
            name in told.get(part, {}) and told[part][name] != value
            for part in ("model", "coreset", "sampling")
            for name, value in asked[part].items()
        )

    @property
    def is_complete(self) -> bool:
        summary = self.summary()
        return summary is not None and summary["status"] == COMPLETE

    def write(self, path: Path, writer: Callable[[Path], Any]) -> Path:
        """Write a file whole or not at all."""
        return write_whole(path, writer)

    def write_text(self, path: Path, text: str) -> Path:
        return self.write(path, lambda place: place.write_text(text, encoding="utf-8"))


def new_folder(path: Path, config: Config, *, overwrite: bool) -> RunFolder:
    """An empty folder with a configuration; one that holds another run is not touched unless asked to."""
    folder = RunFolder(path)
    with writing(folder):
        require(
            not path.exists() or path.is_dir(),
            f"--out {path}",
            got="a file",
            expected="a folder, or a new name",
            fix="Choose another name.",
        )
        found = sorted(item.name for item in path.iterdir()) if path.exists() else []
        if found and overwrite:
            require(
                folder.config_file.exists(),
                f"--overwrite {path}",
                got=f"a folder with {found[0]} that no run has made",
                expected="the folder of a run",
                fix="Choose another --out; nothing was deleted.",
            )
            with locked(folder):
                clear(folder)
        else:
            require(
                not found,
                f"--out {path}",
                got="a folder with a run in it" if folder.config_file.exists() else f"a folder that holds {found[:1]}",
                expected="a new or empty folder",
                fix=f"Go on with it by 'coreset-mcmc resume {path}', choose another --out, or pass --overwrite.",
            )
        path.mkdir(parents=True, exist_ok=True)
        folder.write(folder.config_file, lambda place: write_config(config, place))
    return folder


def clear(folder: RunFolder) -> None:
    """Delete what a run wrote, and nothing else."""
    remove_parts(folder)
    for name in OWN_FILES:
        (folder.path / name).unlink(missing_ok=True)
    shutil.rmtree(folder.checkpoint, ignore_errors=True)


def remove_parts(folder: RunFolder) -> None:
    """Delete files that a killed process had begun to write."""
    for name in OWN_FILES:
        for part in folder.path.glob(f".{name}.*.part"):
            part.unlink(missing_ok=True)


@contextmanager
def empty_if_refused(folder: RunFolder) -> Iterator[None]:
    """A mistake that is found after the folder was made leaves none behind."""
    try:
        yield
    except InputError:
        clear(folder)
        with suppress(OSError):
            folder.path.rmdir()
        raise


@contextmanager
def locked(folder: RunFolder) -> Iterator[None]:
    """One process at a time; the lock is gone with the process, however it ends."""
    lock = FileLock(folder.path / "lock")
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise InputError(
            str(folder.path),
            got="a folder in which another process is at work",
            expected="a run that stands still",
            fix="Wait for it, or stop it.",
        ) from error
    try:
        yield
    finally:
        lock.release()


WRITING_PROBLEMS = {
    errno.ENOSPC: "there is no space left on the disk",
    errno.EDQUOT: "your disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "you may not write there",
    errno.EPERM: "you may not write there",
    errno.ENOENT: "there is no such place",
    errno.ENOTDIR: "a part of the path is a file",
}


@contextmanager
def writing(folder: RunFolder) -> Iterator[None]:
    """Failures of the disk in words; what was saved before stays."""
    try:
        yield
    except OSError as error:
        problem = WRITING_PROBLEMS.get(error.errno or 0, str(error))
        raise RunError(
            f"Could not write to {folder.path}: {problem}. Files that were complete are kept; once there is space "
            f"and permission, 'coreset-mcmc resume {folder.path}' goes on, or choose another --out."
        ) from error
