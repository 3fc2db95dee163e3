"""Which files are meant by a path, a pattern, a folder, an address or a list of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.scans.names import below, is_hidden, natural_key, translated
from coreset_mcmc.scans.retries import with_retries
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
        """The files of a pattern or folder as they are now."""
        if self.pattern:
            return self._matching()
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
        pattern = re.compile(translated(self.pattern), re.DOTALL)
        return [
            entry
            for entry in self.store.under(self.base, recursive=deep)
            if pattern.fullmatch(name := below(self.base, entry.path)) and not is_hidden(name)
        ]

    def _in_folder(self, kind: str, suffixes: Sequence[str]) -> list[Entry]:
        visible = [
            (name, entry)
            for entry in self.store.under(self.base, recursive=True)
            if not is_hidden(name := below(self.base, entry.path))
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
                raise _partitioned(self.shown, by_value, suffixes[0])
        return [entry for _, entry in found]


def _partitioned(shown: str, by_value: list[str], suffix: str) -> InputError:
    column = by_value[0].partition("=")[0]
    return InputError(
        f"scan {shown}",
        got=f"a partitioned folder: {column!r} is in the names of folders such as {by_value[0]!r}, not in the files",
        expected="files that hold all columns",
        fix=f"Write the files with that column inside; or scan the files alone, without {column!r}, by the pattern "
        f"{shown.rstrip('/')}/{'*/' * len(by_value)}*{suffix}",
    )


@dataclass(frozen=True)
class Places:
    """All that was given, in one store."""

    places: tuple[Place, ...]
    kind: str
    suffixes: tuple[str, ...]
    root: str
    """The folder that names of files are relative to."""

    @property
    def store(self) -> Store:
        return self.places[0].store

    @property
    def shown(self) -> str:
        more = f" and {len(self.places) - 1} more" if len(self.places) > 1 else ""
        return f"{self.places[0].shown}{more}"

    def look(self) -> list[Entry]:
        """All files as they are now, in natural order: part-2 before part-10."""
        plain = [place.base for place in self.places if not place.pattern]
        files = dict(zip(plain, self.store.entries(plain), strict=True))
        entries: list[Entry] = []
        for place in self.places:
            known = files.get(place.base) if not place.pattern else None
            entries += [known] if known else place.files(self.kind, self.suffixes)
        return sorted(entries, key=lambda entry: natural_key(entry.path))

    def name(self, path: str) -> str:
        """A file as messages call it."""
        return below(self.root, path)


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
    stores = {(protocol, query) for protocol, _, query in map(split_address, given_paths)}
    require(
        len(stores) == 1,
        "scan",
        got="files in different stores",
        expected="files in one store",
        fix="Copy them to one place, or scan them apart.",
    )
    places = [with_retries(partial(_place, item, options), _shown(item)) for item in given_paths]
    store = places[0].store
    same = tuple(replace(place, store=store) for place in places)
    found = Places(same, kind, tuple(suffixes), _root(same))
    entries = with_retries(found.look, found.shown)
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
    parts = path.split("/")
    wild = next((place for place, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    store, base = store_of(protocol, "/".join(parts[:wild]), query, options)
    return Place(store, base.rstrip("/") or "/", "/".join(parts[wild:]), _shown(given))


def _shown(given: str) -> str:
    """Without keys and options."""
    protocol, path, _ = split_address(given)
    return f"{protocol}://{path.rpartition('@')[2]}" if protocol else given


def _root(places: Sequence[Place]) -> str:
    tops = [
        place.base if place.pattern or place.store.is_folder(place.base) else place.base.rpartition("/")[0]
        for place in places
    ]
    return os.path.commonpath(tops) if len(set(tops)) > 1 else tops[0]
