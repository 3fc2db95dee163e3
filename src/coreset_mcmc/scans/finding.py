"""Which files are meant by a path, a pattern, a folder, an address or a list of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.scans.stores import Entry, Store, split_address, store_of

PARTITION = re.compile(r"[^=/]+=[^/]*")
"""A folder whose name holds a value of a column: ``year=2024``."""


@dataclass(frozen=True)
class Place:
    """One path as it was given: a file, a folder, or a pattern below a folder."""

    store: Store
    base: str
    pattern: str
    """Below ``base``; empty for a file or folder."""
    shown: str
    """Without keys and options."""

    def files(self, kind: str, suffixes: Sequence[str]) -> list[Entry]:
        """The files as they are now."""
        if self.pattern:
            return self._matching()
        (entry,) = self.store.entries([self.base])
        if entry is not None:
            return [entry]
        require(
            self.store.is_folder(self.base),
            f"scan {self.shown}",
            got="no such file or folder",
            expected=f"a {kind} file, a folder of such files or a pattern",
            fix="Check the path.",
        )
        return self._in_folder(kind, suffixes)

    def _matching(self) -> list[Entry]:
        deep = "/" in self.pattern or "**" in self.pattern
        pattern = re.compile(_translated(self.pattern), re.DOTALL)
        return [
            entry
            for entry in self.store.under(self.base, recursive=deep)
            if pattern.fullmatch(name := _below(self.base, entry.path)) and not _is_hidden(name)
        ]

    def _in_folder(self, kind: str, suffixes: Sequence[str]) -> list[Entry]:
        visible = [
            (name, entry)
            for entry in self.store.under(self.base, recursive=True)
            if not _is_hidden(name := _below(self.base, entry.path))
        ]
        found = [(name, entry) for name, entry in visible if name.lower().endswith(tuple(suffixes))]
        require(
            bool(found),
            f"scan {self.shown}",
            got=f"a folder without {kind} files ({len(visible)} other files)",
            expected=f"files that end in {' or '.join(suffixes)}",
            fix="Name the files themselves, e.g. by a pattern: folder/part-*.",
        )
        for name, _ in found:
            by_value = [part for part in name.split("/")[:-1] if PARTITION.fullmatch(part)]
            if by_value:
                raise _partitioned(self.shown, by_value)
        return [entry for _, entry in found]


def _partitioned(shown: str, by_value: list[str]) -> InputError:
    column = by_value[0].partition("=")[0]
    return InputError(
        f"scan {shown}",
        got=f"a partitioned folder: {column!r} is in the names of folders such as {by_value[0]!r}, not in the files",
        expected="files that hold all columns",
        fix=f"Write the files with that column inside; or scan the files alone, without {column!r}, by the pattern "
        f"{shown.rstrip('/')}/{'*/' * len(by_value)}*.",
    )


@dataclass(frozen=True)
class Places:
    """All that was given, in one store."""

    places: tuple[Place, ...]
    kind: str
    suffixes: tuple[str, ...]

    @property
    def store(self) -> Store:
        return self.places[0].store

    @property
    def shown(self) -> str:
        more = f" and {len(self.places) - 1} more" if len(self.places) > 1 else ""
        return f"{self.places[0].shown}{more}"

    def look(self) -> list[Entry]:
        """All files as they are now, in natural order: part-2 before part-10."""
        entries = [entry for place in self.places for entry in place.files(self.kind, self.suffixes)]
        return sorted(entries, key=lambda entry: _natural(entry.path))

    @cached_property
    def root(self) -> str:
        """The folder that names of files are relative to."""
        tops = [
            place.base if place.pattern or self.store.is_folder(place.base) else place.base.rpartition("/")[0]
            for place in self.places
        ]
        return os.path.commonpath(tops) if len(set(tops)) > 1 else tops[0]

    def name(self, path: str) -> str:
        """A file as messages call it."""
        return _below(self.root, path)


def find(
    given: Any, kind: str, suffixes: Sequence[str], options: Mapping[str, Any] | None
) -> tuple[Places, list[Entry]]:
    """What the user means, and the files that are there now."""
    single = isinstance(given, str | os.PathLike)
    require(
        single
        or (isinstance(given, Sequence) and bool(given) and all(isinstance(item, str | os.PathLike) for item in given)),
        "scan",
        got=repr(given)[:200],
        expected="a path, a pattern, a folder, an address, or a list of those",
        fix="Pass text or a pathlib.Path.",
    )
    given_paths = [os.fspath(item) for item in ([given] if single else given)]
    places = tuple(_place(item, options) for item in given_paths)
    stores = {(protocol, query) for protocol, _, query in map(split_address, given_paths)}
    require(
        len(stores) == 1,
        "scan",
        got="files in different stores",
        expected="files in one store",
        fix="Copy them to one place, or scan them apart.",
    )
    found = Places(
        tuple(Place(places[0].store, item.base, item.pattern, item.shown) for item in places), kind, tuple(suffixes)
    )
    entries = found.look()
    require(
        bool(entries),
        f"scan {found.shown}",
        got="no file that matches",
        expected=f"at least one {kind} file",
        fix="Check the pattern; * does not cross folders, ** does.",
    )
    repeated = sorted(path for path, count in Counter(entry.path for entry in entries).items() if count > 1)
    require(
        not repeated,
        f"scan {found.shown}",
        got=f"the same file twice: {repeated[0] if repeated else ''}",
        expected="each file once, since its rows would count twice",
        fix="Take it off the list.",
    )
    return found, entries


def _place(given: str, options: Mapping[str, Any] | None) -> Place:
    protocol, path, query = split_address(given)
    if not protocol:
        path = Path(path).expanduser().absolute().as_posix()
        if os.path.exists(path):
            return Place(store_of("", path, "", None)[0], path, "", given)
    shown = f"{protocol}://{path.rpartition('@')[2]}" if protocol else given
    parts = path.split("/")
    wild = next((place for place, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    store, base = store_of(protocol, "/".join(parts[:wild]), query, options)
    return Place(store, base.rstrip("/") or "/", "/".join(parts[wild:]), shown)


def _below(folder: str, path: str) -> str:
    return path.removeprefix(folder).lstrip("/") if folder else path


def _is_hidden(name: str) -> bool:
    """What other programs keep beside the files: _SUCCESS, _metadata, .part-0.crc, and what is being written."""
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _natural(path: str) -> list[list[Any]]:
    return [
        [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d+)", name))]
        for name in path.split("/")
    ]


def _translated(pattern: str) -> str:
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
