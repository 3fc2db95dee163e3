"""Compiled programs kept on disk, so that the next process of the same shapes need not compile them.

JAX does the keeping, under a key of the program, its options and the versions. What it leaves open is decided here:
where, for whom and how much. A folder belongs to one user alone, for what lies in it is executed; each kind of machine
has a part of its own, for code that was made for one processor may not run on another; and what was not used for
longest goes first when a bound is reached (JAX has such a bound, but asks for one more package).
"""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jax
from jax.experimental.compilation_cache import compilation_cache

from coreset_mcmc.core.errors import InputError, require

FOLDER_VARIABLE = "CORESET_MCMC_CACHE"
"""Names another folder; "off" for none."""
MOST_BYTES = 256 * 2**20
NAME_LENGTH = 16
"""Of the name of a kind of machine."""
SETTINGS: dict[str, Any] = {
    "jax_enable_compilation_cache": True,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""Keep everything: programs are many and small, and most compile in a fraction of a second."""


def default_folder() -> Path:
    """The folder that the environment names, or one beside what other programs keep of their own."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser()
    kept = os.environ.get("XDG_CACHE_HOME")
    return (Path(kept) if kept else Path.home() / ".cache") / "coreset-mcmc" / "programs"


def cache(path: str | Path | None = None, *, max_bytes: int = MOST_BYTES) -> ProgramCache:
    """Keep compiled programs in a folder from now on, or within a ``with`` block, and use those that are there.

    A later process that fits tables of the same shape with the same model and settings compiles next to nothing; the
    numbers are the same. It concerns all programs of JAX in this process.

    Args:
        path: a folder of yours; by default ``~/.cache/coreset-mcmc/programs``, or what ``CORESET_MCMC_CACHE`` names.
        max_bytes: of all files together; those that were not used for longest are removed beyond it.
    """
    require(max_bytes > 0, "max_bytes", got=max_bytes, expected="a positive number", fix="Leave it out for 256 MiB.")
    return ProgramCache(Path(path).expanduser() if path is not None else default_folder(), max_bytes)


class ProgramCache:
    """A folder of compiled programs that is in use until :meth:`close` or the end of the ``with`` block."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        own = make_private(folder) / machine()
        self._before = {name: getattr(jax.config, name) for name in (*SETTINGS, "jax_compilation_cache_dir")}
        prune(folder, max_bytes)
        _configure({**SETTINGS, "jax_compilation_cache_dir": str(own)})

    def close(self) -> None:
        """Go back to what was before; a second call does nothing."""
        if self._before:
            _configure(self._before)
            self._before = {}
            prune(self.folder, self.max_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ProgramCache({str(self.folder)!r}, {num_bytes(self.folder):,} bytes)"


def _configure(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def machine() -> str:
    """A name that machines share which can run each other's programs."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    told = (version("jax"), version("jaxlib"), platform.system(), platform.machine(), flags)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:NAME_LENGTH]


def make_private(folder: Path) -> Path:
    """The folder, which only its owner may enter."""
    fix = "Name a folder of your own, or remove this one."
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise InputError("cache", got=f"{folder} ({error})", expected="a folder that can be made", fix=fix) from error
    if hasattr(os, "getuid"):
        is_private = found.st_uid == os.getuid() and not found.st_mode & 0o022
        require(
            is_private,
            "cache",
            got=f"{folder}, into which others may write",
            expected="a folder that is yours alone, because the programs in it are executed",
            fix=f"{fix} chmod 700 makes it private.",
        )
    return folder


def files_of(folder: Path) -> list[Path]:
    """Programs of all machines, by the names that JAX gives them; whatever else lies in the folder is not ours."""
    parts = [part for part in folder.glob("[0-9a-f]" * NAME_LENGTH) if part.is_dir() and not part.is_symlink()]
    return [path for part in parts for path in part.glob("*-cache") if path.is_file() and not path.is_symlink()]


def num_bytes(folder: Path) -> int:
    """What they take."""
    return sum(size for _, size, _ in _known(folder))


def _known(folder: Path) -> list[tuple[float, int, Path]]:
    """When each file was last used, its size and its name; another process may remove one meanwhile."""
    found = []
    for path in files_of(folder):
        try:
            told = path.stat()
        except FileNotFoundError:
            continue
        found.append((max(told.st_atime, told.st_mtime), told.st_size, path))
    return found


def prune(folder: Path, max_bytes: int) -> None:
    """Remove what was not used for longest until the rest is small enough."""
    known = sorted(_known(folder))
    excess = sum(size for _, size, _ in known) - max_bytes
    for _, size, path in known:
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size


def clear(folder: Path) -> int:
    """Remove all programs; how many bytes they took. Nothing else in the folder is touched."""
    taken = num_bytes(folder)
    prune(folder, 0)
    return taken - num_bytes(folder)
