"""Tables as they are named on a command line: files, folders, patterns and addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from coreset_mcmc.core.errors import require
from coreset_mcmc.scans.stores import split_address

WILD = re.compile(r"[*?\[]")


def is_address(path: str) -> bool:
    """Whether it is in an object store, say, or at least written that way."""
    return bool(split_address(path)[0])


def is_pattern(path: str) -> bool:
    """Whether it stands for all files that match; a file with such a name is meant itself."""
    return not os.path.exists(path) and bool(WILD.search(path))


def absolute(path: str, folder: Path | None = None) -> str:
    """The same from whatever folder it is read; addresses are so anyway."""
    if is_address(path):
        return path
    whole = (folder or Path()) / Path(path).expanduser()
    return str(whole.absolute() if is_pattern(str(whole)) else whole.resolve())


def name_of(paths: Sequence[str]) -> str:
    """A table in a line of text."""
    parts = split_address(paths[0])[1].rstrip("/").split("/")
    first = "/".join(parts[-2:] if WILD.search(parts[-1]) else parts[-1:]) or paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def check_no_keys(paths: Sequence[str]) -> None:
    """Addresses are written into the folder of the run, which is no place for passwords."""
    for path in paths:
        protocol, inside, _ = split_address(path)
        user, sign, rest = inside.partition("/")[0].rpartition("@")
        require(
            not (protocol and sign and ":" in user),
            f"table {protocol}://{rest}",
            got="an address with a password in it, which the run's configuration would show",
            expected="an address without one",
            fix="Pass keys by the environment, e.g. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
