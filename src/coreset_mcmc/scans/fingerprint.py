"""What tells the files of a scan from others, in plain values."""

from __future__ import annotations

import hashlib
from typing import Any

from coreset_mcmc.scans.files import Files
from coreset_mcmc.scans.retries import with_retries

BYTES_AT_ONCE = 2**22


def fingerprint(files: Files, *, full: bool) -> dict[str, Any]:
    """The footers hold sizes and ranges of every group; times and ETags tell what they miss.

    All bytes are read if ``full``; a copy of the files is then the same.
    """
    described = []
    for file, (entry, digest, tag) in enumerate(zip(files.entries, files.digests, files.tags, strict=True)):
        state = _digest(files, file) if full else tag or entry.stamp
        described.append([files.name(file), entry.size, digest, state])
    return {"rows": files.size, "files": described}


def _digest(files: Files, file: int) -> str:
    def read() -> str:
        total = hashlib.sha256()
        with files.places.store.open(files.entries[file].path) as handle:
            while block := handle.read(BYTES_AT_ONCE):
                total.update(block)
        return total.hexdigest()

    files.check(file)
    return with_retries(read, files.name(file))
