"""What is known of workers from pass to pass: which parcels they have opened, which rows they keep.

It may be wrong, for workers forget and start anew. They say so when they lack something, and are sent all of it then.
"""

from __future__ import annotations

from collections import OrderedDict

MOST_PARCELS = 32
"""Remembered for a worker: fewer than the worker keeps."""
MOST_SOURCES = 4


class Ledger:
    """Who has what."""

    def __init__(self) -> None:
        self._parcels: dict[str, OrderedDict[str, None]] = {}
        self._homes: OrderedDict[tuple[str, int], dict[int, str]] = OrderedDict()
        self.silent: set[str] = set()
        """Workers that have not answered in time: they get nothing more, as long as there are others."""

    def has_parcel(self, worker: str, name: str) -> bool:
        return name in self._parcels.get(worker, ())

    def note_parcels(self, worker: str, names: list[str]) -> None:
        known = self._parcels.setdefault(worker, OrderedDict())
        for name in names:
            known[name] = None
            known.move_to_end(name)
        while len(known) > MOST_PARCELS:
            known.popitem(last=False)

    def home_of(self, rows: str, leaf_rows: int, part: int) -> str | None:
        """The worker that keeps a part of these rows."""
        return self._homes.get((rows, leaf_rows), {}).get(part)

    def note_home(self, rows: str, leaf_rows: int, part: int, worker: str) -> None:
        homes = self._homes.setdefault((rows, leaf_rows), {})
        homes[part] = worker
        self._homes.move_to_end((rows, leaf_rows))
        while len(self._homes) > MOST_SOURCES:
            self._homes.popitem(last=False)

    def forget(self, worker: str) -> None:
        """It has started anew, or is gone."""
        self._parcels.pop(worker, None)
        for homes in self._homes.values():
            for part in [part for part, home in homes.items() if home == worker]:
                del homes[part]
