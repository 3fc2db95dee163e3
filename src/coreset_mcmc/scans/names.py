"""Names of files: patterns, natural order, and which are hidden."""

from __future__ import annotations

import re
from typing import Any


def below(folder: str, path: str) -> str:
    """A path relative to a folder that holds it."""
    return path.removeprefix(folder).lstrip("/") if folder else path


def is_hidden(name: str) -> bool:
    """What other programs keep beside the files: _SUCCESS, _metadata, .part-0.crc, and what is being written."""
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def natural_key(path: str) -> list[list[Any]]:
    """Sorts numbers inside of names by their size."""
    return [
        [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d+)", name))]
        for name in path.split("/")
    ]


def translated(pattern: str) -> str:
    """A regular expression: * and ? stay within a folder, ** crosses folders."""
    result = ""
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", pattern, re.DOTALL):
        if token == "**/":
            result += r"(?:.*/)?"
        elif token == "**":
            result += ".*"
        elif token == "*":
            result += "[^/]*"
        elif token == "?":
            result += "[^/]"
        elif token.startswith("[") and len(token) > 1:
            result += "[" + token[1:].replace("!", "^", 1) if token[1] == "!" else token
        else:
            result += re.escape(token)
    return result
