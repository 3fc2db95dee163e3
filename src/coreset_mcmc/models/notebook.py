"""How a model looks in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import jax
import numpy as np

from coreset_mcmc.core.html import display, table

if TYPE_CHECKING:
    from coreset_mcmc.models.model import Model


def model_display(model: Model) -> str:
    """Its parameters and their shapes, and what it can do."""
    facts = [
        ("parameters", _parameters(model)),
        ("gradients", "yes" if model.differentiable else "no"),
        ("knows its data", "yes" if model.data is not None else "no: pass them to cm.fit"),
        ("can predict", "yes" if model.predictive is not None or model.expected is not None else "no"),
    ]
    return display(repr(model), table(facts))


def _parameters(model: Model) -> str:
    """Names and shapes of what chains move on."""
    if model.initial_position is None or callable(model.initial_position):
        return "known once the data are" if model.initial_position is None else "drawn at random for each chain"
    leaves = jax.tree_util.tree_leaves_with_path(model.initial_position)
    named = [
        f"{jax.tree_util.keystr(path, simple=True, separator='.') or 'position'} {np.shape(leaf)}"
        for path, leaf in leaves
    ]
    return escape(", ".join(text.replace(" ()", "") for text in named))
