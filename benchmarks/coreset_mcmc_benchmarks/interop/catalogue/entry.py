"""One model of the catalogue, and the register that it enters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A model of a library, made on any number of rows."""

    library: str
    name: str
    make: Callable[[int], Any]
    """From the number of rows: a ``pymc.Model``, a ``bambi.Model``, or a case of NumPyro."""
    is_glm: bool = False
    """A linear predictor, a link and a family, without groups."""
    refusal: str = ""
    """Words of the message with which it is refused, and which say why; empty if it converts."""


@dataclass
class Register:
    """The models of one library, in the order in which they were written down."""

    library: str
    entries: list[Entry] = field(default_factory=list)

    def add(self, name: str, *, glm: bool = False, refused: str = "") -> Callable[[Callable[[int], Any]], Any]:
        """A decorator for the function that makes the model."""

        def put(make: Callable[[int], Any]) -> Callable[[int], Any]:
            self.entries.append(Entry(self.library, name, make, glm, refused))
            return make

        return put
