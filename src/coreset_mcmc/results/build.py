"""A fit from two runs of the driver, or from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc.core.plain import number, record
from coreset_mcmc.core.trees import leaf_names
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.driver.run import Run
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.with_data import bound
from coreset_mcmc.posterior.distance import Surveyed
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.skeleton import BARE, names_from, names_of_start
from coreset_mcmc.results.tree import (
    CORESET,
    OBSERVED,
    TRAINING,
    coreset_group,
    observed_group,
    read_tree,
    statistics_of,
    training_group,
    tree_of_draws,
    unreadable,
)

STAGES = ("pilot", "training", "sampling", "check")
"""Whose cost a file holds."""


def build_fit(
    *,
    pilot: Cost,
    training: Run,
    sampling: Run,
    history: Any,
    check: Cost,
    law: Law,
    checked: Surveyed | None,
    coreset: Coreset | None,
    settings: Mapping[str, Any],
    dims: Mapping[str, Any] | None,
    coords: Mapping[str, Any] | None,
    model: Model,
    data: Any,
    rows: Rows,
    var_names: Sequence[str],
    observed: Mapping[str, np.ndarray],
    recipe: Mapping[str, Any],
) -> Fit:
    """``history`` is the info of the kept draws; ``observed`` are responses of the coreset's rows."""
    statistics = statistics_of(history)
    tree = tree_of_draws(model, history.position, statistics, var_names, dims=dims or {}, coords=coords or {})
    if coreset is not None:
        if observed:
            tree[OBSERVED] = observed_group(observed, coreset.indices)
        tree[CORESET] = coreset_group(coreset)
    tree[TRAINING] = training_group(training)
    return Fit(
        tree,
        law=law,
        kl_estimate=float("nan") if checked is None else checked.kl_estimate,
        pilot=pilot,
        training=Cost.of(training),
        sampling=Cost.of(sampling),
        check=check,
        settings=dict(settings),
        position_names=leaf_names(history.position, BARE),
        model=model,
        data=data,
        rows=rows,
        recipe=dict(recipe),
        checked=checked,
    )


def load(path: Path | str, *, model: Model | None = None, data: Any = None) -> Fit:
    """Read what :meth:`Fit.save` wrote; with the model and its data, predictions and LOO work as before."""
    tree, header = read_tree(path)
    if model is not None:
        data = model.data if data is None else data
        model = bound(model, data)
    try:
        told = _told_by(header)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise unreadable(path, error) from error
    names = told.pop("position_names")
    return Fit(
        tree,
        **told,
        position_names=names_of_start(model) if names is None else names,
        model=model,
        data=data,
        recipe=None,
    )


def _told_by(header: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a fit that its file holds in words; names are None if they are those of the model's start."""
    skeleton = header["position"]
    costs = {stage: record(Cost, header["costs"][stage]) for stage in STAGES}
    return {
        **costs,
        "law": Law(header["law"]),
        "kl_estimate": number(header["kl_estimate"]),
        "settings": {
            name: number(value) if name in header["numbers"] else value for name, value in header["settings"].items()
        },
        "position_names": None if skeleton is None else names_from(skeleton),
    }
