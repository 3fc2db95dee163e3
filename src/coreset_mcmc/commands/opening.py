"""Which kind of table is meant by the paths of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coreset_mcmc.commands.paths import check_no_keys, is_address, is_pattern
from coreset_mcmc.commands.scanned_table import ScannedTable
from coreset_mcmc.commands.table import Table, WholeTable
from coreset_mcmc.commands.text_table import TextTable
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.scans.arrow import Arrow
from coreset_mcmc.scans.names import below
from coreset_mcmc.scans.parquet import Parquet
from coreset_mcmc.scans.stores import split_address
from coreset_mcmc.tables import column_names
from coreset_mcmc.tables.formats import ARROW, NUMPY, PARQUET, TEXT, Format
from coreset_mcmc.tables.reading import SUFFIXES, formats_in


def open_table(paths: Sequence[str]) -> Table:
    """Look at names and indices of files; no row is read."""
    check_no_keys(paths)
    single = Path(paths[0]) if len(paths) == 1 and not is_address(paths[0]) and not is_pattern(paths[0]) else None
    if single is not None and not single.is_dir():
        column_names(single)
    forms = {_form(path): path for path in paths}
    require(
        len(forms) == 1,
        "table",
        got=" and ".join(f"{form.name} ({path})" for form, path in forms.items()),
        expected="files of one format",
        fix="Convert the others, or fit them apart.",
    )
    (form,) = forms
    if form is TEXT:
        return TextTable(paths)
    if form is NUMPY:
        require(single is not None, "table", got=f"{len(paths)} NumPy archives", expected="one", fix="Save Parquet.")
        assert single is not None
        return WholeTable(single, "a NumPy archive")
    if single is not None and single.is_dir() and _is_partitioned(single):
        return WholeTable(single, "a folder in which names of folders hold values of columns")
    try:
        return ScannedTable(paths, Parquet() if form is PARQUET else Arrow(), _file(single))
    except InputError:
        if form is ARROW and single is not None:
            return WholeTable(single, "a stream of Arrow batches, which has no index")
        raise


def _file(single: Path | None) -> Path | None:
    return single if single is not None and single.is_file() else None


def _form(path: str) -> Format:
    """By the end of the name, or those in a folder; names that say nothing mean Parquet."""
    if Path(path).is_dir():
        return _form_of_folder(Path(path))
    name = split_address(path)[1].lower()
    return next((form for suffix, form in SUFFIXES.items() if name.endswith(suffix)), PARQUET)


def _form_of_folder(folder: Path) -> Format:
    found = formats_in(folder)
    listed = " and ".join(f"{len(names)} files of {form.name} ({names[0]})" for form, names in found.items())
    require(
        len(found) == 1,
        f"table {folder}",
        got=f"a folder with {listed}" if found else "a folder without a table in it",
        expected="files of one format",
        fix=f"Name those that are meant by a pattern in quotes: '{folder}/*.csv'.",
    )
    (form,) = found
    require(
        form is not NUMPY,
        f"table {folder}",
        got="a folder of NumPy archives",
        expected="one archive, or files of another format",
        fix="Name the file itself.",
    )
    return form


def _is_partitioned(folder: Path) -> bool:
    parts = [below(str(folder), str(path)) for pattern in Parquet.suffixes for path in folder.rglob(f"*{pattern}")]
    return any("=" in part for name in parts for part in name.split("/")[:-1])
