"""Formulas with branches whose slopes stay finite in the branch that is not taken.

PyMC writes tails of the normal distribution as ``switch(z < -1, left(z), right(z))``. Each formula is exact on its own
side and overflows far away on the other one. Values are chosen by the switch; in reverse mode slopes are multiplied by
zero, and zero times infinity is NaN. Here each formula sees z no further than to the border between the two:
``switch(z < -1, left(min(z, -1)), right(max(z, -1)))`` is the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coreset_mcmc.interop.pymc.graph import rebuilt
from coreset_mcmc.interop.pymc.row_sources import Variable


def with_limited_branches(outputs: Sequence[Variable]) -> list[Variable]:
    """The same functions; branches on comparisons with a constant are limited where one of them holds ``erfcx``."""
    import pytensor.tensor as pt

    if not _hold_tails(outputs):
        return list(outputs)

    def remake(operation: Any, inputs: list[Variable]) -> list[Variable] | None:
        if not _is_scalar_operation(operation, "Switch") or not _hold_tails(inputs[1:]):
            return None
        condition, taken, otherwise = inputs
        compared = _comparison(condition)
        if compared is None:
            return None
        place, border = compared
        (taken,) = rebuilt([taken], {place: pt.switch(condition, place, border)})
        (otherwise,) = rebuilt([otherwise], {place: pt.switch(condition, border, place)})
        return [pt.switch(condition, taken, otherwise)]

    return rebuilt(outputs, {}, remake)


def _comparison(condition: Variable) -> tuple[Variable, Variable] | None:
    """What is compared, and with which constant."""
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import graph_inputs

    node = condition.owner
    if node is None or not any(_is_scalar_operation(node.op, name) for name in ("LT", "LE", "GT", "GE")):
        return None
    place, border = node.inputs
    return (place, border) if all(isinstance(item, Constant) for item in graph_inputs([border])) else None


def _is_scalar_operation(operation: Any, name: str) -> bool:
    return type(getattr(operation, "scalar_op", None)).__name__ == name


def _hold_tails(outputs: Sequence[Variable]) -> bool:
    from pytensor.graph.traversal import ancestors

    return any(item.owner is not None and _is_scalar_operation(item.owner.op, "Erfcx") for item in ancestors(outputs))
