"""Libraries that take long to import, imported when something of theirs is first used.

By hand: :func:`lazy_loader.load` leaves half-loaded modules in ``sys.modules``, where other libraries look for them.
"""

from __future__ import annotations

import importlib
from typing import Any


class ModuleOnUse:
    """Stands for a module until something of it is wanted."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> Any:
        return getattr(importlib.import_module(self._name), part)


def on_use(name: str) -> Any:
    """The module of this name, not imported yet."""
    return ModuleOnUse(name)
