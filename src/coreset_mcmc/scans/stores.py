"""Where files lie: on this machine's disks, in an object store that Arrow knows, or in anything that fsspec knows.

A store travels by pickle as its address and options; whoever receives it connects for itself.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coreset_mcmc.core.errors import InputError


@dataclass(frozen=True)
class Entry:
    """A file as a listing shows it."""

    path: str
    """Within its store."""
    size: int
    stamp: str
    """What changes with the contents: the time of the last change, or an ETag."""


class Store(ABC):
    """Lists and opens files."""

    @property
    @abstractmethod
    def filesystem(self) -> Any:
        """As Arrow wants it."""

    @abstractmethod
    def under(self, folder: str, *, recursive: bool) -> list[Entry]:
        """Files in a folder, as they are now."""

    @abstractmethod
    def entries(self, paths: Sequence[str]) -> list[Entry | None]:
        """These files as they are now; None for those that are not there."""

    is_remote = True

    def is_folder(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self.filesystem.get_file_info(path).type == FileType.Directory)

    def open(self, path: str) -> Any:
        """A file to read anywhere in."""
        return self.filesystem.open_input_file(path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "filesystem"}


@dataclass(frozen=True)
class ArrowStore(Store):
    """The local disk if there is no address, otherwise what Arrow finds behind it: s3, gs, abfs, hdfs, file."""

    address: str | None = field(default=None, repr=False)
    """It may hold keys, so that it is never shown."""

    @cached_property
    def filesystem(self) -> Any:
        from pyarrow import fs

        return fs.LocalFileSystem() if self.address is None else fs.FileSystem.from_uri(self.address)[0]

    @property
    def is_remote(self) -> bool:  # type: ignore[override]
        return bool(self.filesystem.type_name != "local")

    def under(self, folder: str, *, recursive: bool) -> list[Entry]:
        from pyarrow.fs import FileSelector, FileType

        found = self.filesystem.get_file_info(FileSelector(folder, recursive=recursive, allow_not_found=True))
        return [_entry(info) for info in found if info.type == FileType.File]

    def entries(self, paths: Sequence[str]) -> list[Entry | None]:
        from pyarrow.fs import FileType

        found = self.filesystem.get_file_info(list(paths))
        return [_entry(info) if info.type == FileType.File else None for info in found]


def _entry(info: Any) -> Entry:
    return Entry(info.path, int(info.size), str(info.mtime_ns))


@dataclass(frozen=True)
class FsspecStore(Store):
    """Whatever fsspec has a file system for, with its options."""

    protocol: str
    options: Mapping[str, Any] = field(repr=False)

    @cached_property
    def filesystem(self) -> Any:
        from pyarrow import fs

        return fs.PyFileSystem(fs.FSSpecHandler(self._files))

    @property
    def _files(self) -> Any:
        try:
            import fsspec

            return fsspec.filesystem(self.protocol, **self.options)
        except ImportError as error:
            raise InputError(
                f"{self.protocol}:// with storage_options",
                got=f"no library for it ({error})",
                expected="fsspec and its file system for this protocol",
                fix="Install it, e.g. pip install s3fs (gcsfs, adlfs), or leave out storage_options.",
            ) from error

    def under(self, folder: str, *, recursive: bool) -> list[Entry]:
        files = self._files
        files.invalidate_cache()
        found = files.find(folder, maxdepth=None if recursive else 1, detail=True)
        return [_described(path, info) for path, info in found.items() if info["type"] == "file"]

    def entries(self, paths: Sequence[str]) -> list[Entry | None]:
        files = self._files
        files.invalidate_cache()
        return [self._entry(files, path) for path in paths]

    @staticmethod
    def _entry(files: Any, path: str) -> Entry | None:
        try:
            info = files.info(path)
        except FileNotFoundError:
            return None
        return _described(path, info) if info["type"] == "file" else None


def _described(path: str, info: Mapping[str, Any]) -> Entry:
    stamp = next((info[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if info.get(key)), "")
    return Entry(path, int(info["size"]), str(stamp).strip('"'))


def split_address(address: str) -> tuple[str, str, str]:
    """The protocol, the path behind it and options after a question mark; a plain path has no protocol."""
    match = re.fullmatch(r"([a-zA-Z][a-zA-Z0-9+.-]+)://([^?]*)(\?.*)?", address, re.DOTALL)
    return (match[1].lower(), match[2], match[3] or "") if match else ("", address, "")


def store_of(protocol: str, path: str, query: str, options: Mapping[str, Any] | None) -> tuple[Store, str]:
    """The store behind an address without wildcards, and the path in it."""
    import pyarrow as pa
    from pyarrow import fs

    if not protocol:
        return ArrowStore(), path
    if options:
        store = FsspecStore(protocol, dict(options))
        return store, str(store._files._strip_protocol(f"{protocol}://{path}"))
    address = f"{protocol}://{path}{query}"
    try:
        found, inside = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, ValueError) as error:
        if "nrecognized filesystem" not in str(error):
            raise _not_understood(protocol, path, error) from error
        try:
            store = FsspecStore(protocol, {})
            return store, str(store._files._strip_protocol(f"{protocol}://{path}"))
        except ValueError as unknown:
            raise _not_understood(protocol, path, unknown) from unknown
    return (ArrowStore() if found.type_name == "local" else ArrowStore(address)), str(inside)


def _not_understood(protocol: str, path: str, error: Exception) -> InputError:
    return InputError(
        f"scan {protocol}://{path.rpartition('@')[2]}",
        got=f"an address that cannot be understood ({str(error).splitlines()[0][:200]})",
        expected="an address such as s3://bucket/folder, gs://bucket/folder or file:///folder",
        fix="Check the protocol and the path; options for fsspec go into storage_options.",
    )
