"""Text files with delimiters: their names, their delimiter, what stands for a missing value, what can be wrong."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import InputError

MISSING = ["", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
"""What stands for a missing value in text, as in pandas."""
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
OTHER_DELIMITERS = (",", ";", "\t", "|", " ")
INDEX = re.compile(r"__index_level_\d+__")
"""How pandas calls an index without a name in Parquet and Arrow files."""


def is_index(name: str) -> bool:
    """Whether a column is an index that pandas has written along."""
    return INDEX.fullmatch(name) is not None


def is_compressed(path: Path) -> bool:
    """By its name."""
    return path.name.lower().endswith(".gz")


def open_text(path: Path) -> Any:
    """The bytes of the text, unpacked."""
    return gzip.open(path, "rb") if is_compressed(path) else path.open("rb")


def header(path: Path) -> tuple[list[str], str]:
    """Names and the delimiter: that of the suffix, or another one if the first line has only others."""
    with open_text(path) as file:
        line = file.readline().decode("utf-8-sig").strip("\r\n")
    suffix = path.name.lower().removesuffix(".gz")[-4:]
    usual = DELIMITERS.get(suffix, ",")
    counts = {delimiter: line.count(delimiter) for delimiter in OTHER_DELIMITERS}
    delimiter = usual if counts[usual] or not any(counts.values()) else max(counts, key=lambda item: counts[item])
    if delimiter == " " and suffix != ".txt":
        delimiter = usual
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def options(path: Path, **conversion: Any) -> dict[str, Any]:
    """How Arrow is to parse and convert such a file."""
    from pyarrow import csv as arrow_csv

    return {
        "parse_options": arrow_csv.ParseOptions(delimiter=header(path)[1], newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True, **conversion),
    }


def explain(path: Path, error: Exception) -> InputError | None:
    """Bytes that are no UTF-8 and rows of another length have a place in the file."""
    if isinstance(error, UnicodeDecodeError) or "UTF" in str(error):
        return not_utf8(path)
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", str(error))
    if ragged is None:
        return None
    row, expected, got = ragged.groups()
    return InputError(
        f"table {path}",
        got=f"{f'row {row}' if row else 'a row'} with {got} values",
        expected=f"{expected} values in every row, one for each name in the first line",
        fix="Quote values that hold the delimiter; drop lines that are no rows.",
    )


def not_utf8(path: Path) -> InputError:
    """Read on as bytes, to say where."""
    where = "bytes"
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"byte 0x{line[error.start]:02x} in line {number}"
                break
    return InputError(
        f"table {path}",
        got=f"{where}, which is no UTF-8",
        expected="text in UTF-8",
        fix="Convert it, e.g. iconv -f latin1 -t utf-8 old.csv > new.csv, or pandas.read_csv(path, "
        "encoding='latin1').to_parquet('new.parquet').",
    )
