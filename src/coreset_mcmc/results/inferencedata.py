"""Results for users of ArviZ before 1.0, whose container is ``InferenceData``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coreset_mcmc.core.errors import InputError

if TYPE_CHECKING:
    import xarray


def to_inferencedata(tree: xarray.DataTree) -> Any:
    """All groups of the tree as an ``arviz.InferenceData``."""
    try:
        from arviz import InferenceData  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError(
            "to_inferencedata",
            got="no ArviZ with InferenceData",
            expected="the package arviz below version 1",
            fix='Install it (pip install "arviz<1"), or use fit.tree, which newer versions of ArviZ read.',
        ) from error
    return InferenceData(**{name: group.to_dataset() for name, group in tree.children.items()})
