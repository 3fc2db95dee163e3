"""Functions of ``formulae`` that look at all rows they are given, for runs of rows that are not all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.tables.columns import Column


@dataclass(frozen=True, eq=False)
class BinaryByLeaf:
    """``binary(x, success)`` where success, if it is left out, is the first level of the whole column."""

    first: dict[str, Any]

    def __call__(self, x: Any, success: Any = None) -> np.ndarray:
        chosen = self.first[x.name] if success is None else success
        return np.where(x == chosen, 1, 0)


def levels_by_leaf(data: Any, *unused: Any, **also_unused: Any) -> Any:
    """``C``, ``S`` and ``T`` inside of other calls: some levels may be absent."""
    from formulae.categorical import CategoricalBox

    return CategoricalBox(np.asarray(data), None, None)


def environment_by_leaf(outer: Any, columns: Sequence[Column]) -> Any:
    """What a call can reach when it is evaluated on some of the rows."""
    from formulae.categorical import ENCODINGS
    from formulae.environment import Environment
    from formulae.transforms import TRANSFORMS

    binary = BinaryByLeaf({column.name: sorted(column.levels)[0] for column in columns if column.levels})
    instead = {"B": binary, "binary": binary, **dict.fromkeys(("C", "S", "T"), levels_by_leaf)}
    return Environment([{**TRANSFORMS, **ENCODINGS, **instead}]).with_outer_namespace(outer.namespace)
