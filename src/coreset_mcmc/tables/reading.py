"""Tables on disk: text, Parquet, Feather and Arrow, NumPy archives.

Only the columns that are asked for are read, where the format allows it. A file is never trusted to be what its name
says: whatever the libraries raise becomes an error that says what is wrong with the file.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.watching import tell_bytes
from coreset_mcmc.tables.formats import ARROW, NUMPY, PARQUET, TEXT, Format
from coreset_mcmc.tables.formula_check import close_to

SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), TEXT),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ARROW),
    ".npz": NUMPY,
}
BYTES_AT_ONCE = 2**20


def read_table(path: Path | str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table; ``columns`` are those that are needed, all by default."""
    path = Path(path)
    form = _format_of(path)
    names = _checked_names(path, form)
    if columns is not None:
        for column in columns:
            if column not in names:
                close = list(close_to(column, names))
                raise InputError(
                    f"table {path}",
                    got=f"no column {column!r}",
                    expected=f"one of {names[:20]}{' ...' if len(names) > 20 else ''}",
                    fix=f"Did you mean {' or '.join(map(repr, close))}?" if close else "Check the spelling.",
                )
    wanted = names if columns is None else list(dict.fromkeys(columns))
    frame = _guarded(path, form, lambda: form.read(path, wanted))
    require(len(frame) > 0, f"table {path}", got="no rows", expected="at least one row", fix="Check what wrote it.")
    result: pd.DataFrame = frame
    return result


def column_names(path: Path | str) -> list[str]:
    """Names of the columns of a table, without reading its rows."""
    path = Path(path)
    return _checked_names(path, _format_of(path))


def digest(path: Path | str) -> str:
    """The SHA-256 of a file, or of the names and contents of all files of a folder."""
    path = Path(path)
    total = hashlib.sha256()
    if not path.is_dir():
        size, done = path.stat().st_size if path.is_file() else 0, 0
        for block in _blocks(path):
            total.update(block)
            done += len(block)
            tell_bytes(f"looking at {path.name}", done, size)
        return total.hexdigest()
    for part in sorted(item for item in path.rglob("*") if item.is_file()):
        total.update(part.relative_to(path).as_posix().encode() + b"\0")
        total.update(bytes.fromhex(digest(part)))
    return total.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := file.read(BYTES_AT_ONCE):
                yield block
    except OSError as error:
        raise _unreadable(path, error) from error


def _format_of(path: Path) -> Format:
    require(path.exists(), f"table {path}", got="no such file", expected="a file", fix="Check the path.")
    if path.is_dir():
        return _format_of_folder(path)
    require(path.is_file(), f"table {path}", got="neither file nor folder", expected="a file", fix="Check the path.")
    name = path.name.lower()
    suffix = next((known for known in SUFFIXES if name.endswith(known)), None)
    if suffix is None:
        raise InputError(
            f"table {path}",
            got=f"the suffix {path.suffix!r}" if path.suffix else "no suffix",
            expected=f"one of {', '.join(SUFFIXES)}",
            fix="Convert the file, e.g. with pandas to Parquet: frame.to_parquet('table.parquet').",
        )
    size = path.stat().st_size
    require(size > 0, f"table {path}", got="an empty file", expected="a table", fix="Check what wrote it.")
    return SUFFIXES[suffix]


def formats_in(folder: Path) -> dict[Format, list[str]]:
    """Names of the files of a folder, without hidden ones, by their format."""
    found: dict[Format, list[str]] = {}
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        name = path.relative_to(folder).as_posix()
        form = next((form for suffix, form in SUFFIXES.items() if name.lower().endswith(suffix)), None)
        if form is not None and not any(part.startswith((".", "_")) for part in name.split("/")):
            found.setdefault(form, []).append(name)
    return found


def _format_of_folder(folder: Path) -> Format:
    """Parquet, and nothing else that could be a table."""
    found = formats_in(folder)
    listed = " and ".join(f"{len(names)} files of {form.name} ({names[0]})" for form, names in found.items())
    require(
        set(found) == {PARQUET},
        f"table {folder}",
        got=f"a folder with {listed}" if found else "a folder without tables",
        expected="a file, or a folder of Parquet files alone",
        fix="Name the file itself, or several by a pattern in quotes on the command line.",
    )
    return PARQUET


def _checked_names(path: Path, form: Format) -> list[str]:
    names = _guarded(path, form, lambda: form.names(path))
    empty = [place + 1 for place, name in enumerate(names) if not name.strip()]
    require(
        bool(names) and not empty,
        f"table {path}",
        got=f"no name for columns {empty[:10]}" if names else "no columns",
        expected="a name for every column",
        fix="The first line of a text file holds the names; an index that was written without one can be left out "
        "with frame.to_csv(..., index=False).",
    )
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    require(
        not repeated,
        f"table {path}",
        got=f"repeated columns {repeated}",
        expected="one column for each name",
        fix="Rename or drop the repeated columns.",
    )
    result: list[str] = names
    return result


def _guarded(path: Path, form: Format, function: Any) -> Any:
    import zipfile
    import zlib

    import pyarrow as pa

    try:
        return function()
    except InputError:
        raise
    except PermissionError as error:
        raise _unreadable(path, error) from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise _not_that_format(path, form, error) from error
    except (pa.ArrowException, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise _not_that_format(path, form, error) from error


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"table {path}",
        got=error.strerror or str(error),
        expected="a file that may be read",
        fix="Check the path and its permissions (ls -l).",
    )


def _not_that_format(path: Path, form: Format, error: Exception) -> InputError:
    explained = form.explain(path, error)
    if explained is not None:
        return explained
    summary = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return InputError(
        f"table {path}",
        got=f"something that cannot be read as {form.name} ({summary})",
        expected=f"a complete {form.name} file",
        fix="It may be cut off, or have the suffix of another format; write or download it again.",
    )
