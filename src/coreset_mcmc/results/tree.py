"""The tree of a fit in ArviZ's layout: put together from draws, written to a netCDF file and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.trees import chain_first, named_leaves
from coreset_mcmc.core.types import Position
from coreset_mcmc.driver.run import Run
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.user_scale import shown_draws
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.skeleton import BARE

if TYPE_CHECKING:
    import h5py
    import xarray
else:
    xarray = on_use("xarray")
    h5py = on_use("h5py")

ATTRIBUTE = "coreset_mcmc"
"""Of the tree: text in strict JSON with what the groups cannot hold."""
ENGINE: Literal["h5netcdf"] = "h5netcdf"
POSTERIOR, STATISTICS = "posterior", "sample_stats"
POSITIONS = "unconstrained_posterior"
"""The group of positions on which the chains moved, where ``posterior`` shows something else or less."""
CORESET, OBSERVED, TRAINING = "coreset", "observed_data", "training"
DATA = "data."
TERM, NAMES = "gaussian_term.", "names"
"""Before the name of a column of the coreset's rows."""
NAMES_OF_STATISTICS = {"log_density": "lp", "num_steps": "n_steps"}
"""As PyMC calls them; other statistics keep their names."""


def tree_of_draws(
    model: Model,
    positions: Position,
    statistics: Mapping[str, Any],
    names: Sequence[str],
    *,
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Any],
) -> xarray.DataTree:
    """The groups that hold draws, from leaves and statistics (draw, chain, ...); ``names`` is what the user sees."""
    import arviz_base  # noqa: PLC0415 - takes a quarter of a second, during which ``fit`` compiles

    groups = {
        POSTERIOR: shown_draws(model, positions, names),
        STATISTICS: {name: chain_first(values) for name, values in statistics.items()},
    }
    tree = arviz_base.from_dict(
        {name: group for name, group in groups.items() if group},
        dims={name: list(inner) for name, inner in dims.items() if name in names},
        coords=dict(coords),
    )
    moved = named_leaves(chain_first(positions), BARE)
    if model.constrain is not None or set(moved) != set(names):
        tree[POSITIONS] = arviz_base.from_dict({POSITIONS: moved})[POSITIONS]
    return tree


@double_precision
def with_other_draws(
    tree: xarray.DataTree, model: Model, positions: Position, statistics: Mapping[str, Any]
) -> xarray.DataTree:
    """A tree with these draws, and with the names, labels and other groups of ``tree``."""
    shown = tree[POSTERIOR].to_dataset()
    leading = ("chain", "draw")
    made = tree_of_draws(
        model,
        positions,
        statistics,
        [str(name) for name in shown.data_vars],
        dims={str(name): [str(dim) for dim in shown[name].dims if dim not in leading] for name in shown.data_vars},
        coords={str(key): value.to_numpy() for key, value in shown.coords.items() if key not in leading},
    )
    for name, group in tree.children.items():
        if name not in (POSTERIOR, STATISTICS, POSITIONS):
            made[name] = group
    return made


def statistics_of(info: Any) -> dict[str, Any]:
    """Every statistic of a sampler's info that has a value for each draw and chain."""
    statistics = {name: value for name, value in info._asdict().items() if name != "position"}
    return {NAMES_OF_STATISTICS.get(name, name): value for name, value in statistics.items() if np.ndim(value) == 2}


def training_group(training: Run) -> xarray.DataTree:
    """Every scalar number that a training step reports, and when."""
    reported = {
        name: ("iteration", value)
        for name, value in training.history._asdict().items()
        if np.ndim(value) == 1 and np.issubdtype(value.dtype, np.floating)
    }
    return xarray.DataTree(xarray.Dataset({"seconds": ("iteration", training.step_seconds), **reported}))


def observed_group(values: Mapping[str, np.ndarray], indices: np.ndarray) -> xarray.DataTree:
    """Responses of the coreset's rows, labelled by their row numbers in the data."""
    variables = {
        name: (["coreset_row", *(f"{name}_dim_{axis}" for axis in range(1, array.ndim))], array)
        for name, array in values.items()
    }
    return xarray.DataTree(xarray.Dataset(variables, coords={"coreset_row": indices}))


def coreset_group(coreset: Coreset) -> xarray.DataTree:
    """Row numbers, weights and the rows themselves."""
    variables: dict[str, Any] = {"row": ("coreset_row", coreset.indices), "weight": ("coreset_row", coreset.weights)}
    for name, values in coreset.columns.items():
        inner = [f"{DATA}{name}_dim_{axis}" for axis in range(values.ndim - 1)]
        variables[f"{DATA}{name}"] = (["coreset_row", *inner], values)
    if coreset.term is not None:
        for name, array in coreset.term.arrays().items():
            variables[f"{TERM}{name}"] = (["coordinate", "other_coordinate"][: array.ndim], array)
        variables[f"{TERM}{NAMES}"] = ("coordinate", list(coreset.coordinates))
    return xarray.DataTree(xarray.Dataset(variables, attrs={"num_rows": coreset.num_rows}))


def coreset_from(group: xarray.DataTree) -> Coreset:
    """The coreset back from its group."""
    names = [str(name) for name in group.data_vars if str(name).startswith(DATA)]
    columns = {name.removeprefix(DATA): group[name].to_numpy() for name in names}
    of_term = [str(name) for name in group.data_vars if str(name).startswith(TERM)]
    arrays = {name.removeprefix(TERM): group[name].to_numpy() for name in of_term}
    coordinates = tuple(str(name) for name in arrays.pop(NAMES, ()))
    return Coreset(
        group["row"].to_numpy(),
        group["weight"].to_numpy(),
        int(group.attrs["num_rows"]),
        columns,
        GaussianTerm(**arrays) if arrays else None,
        coordinates,
    )


def write_tree(tree: xarray.DataTree, path: Path | str) -> Path:
    """Write everything to one file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tree.to_netcdf(path, engine=ENGINE)
    return path


def read_tree(path: Path | str) -> tuple[xarray.DataTree, dict[str, Any]]:
    """The tree, and what its attribute holds."""
    try:
        if Path(path).is_file() and not h5py.is_hdf5(path):
            raise ValueError("no file in HDF5")
        with xarray.open_datatree(path, engine=ENGINE) as opened:
            tree = opened.load()
        return tree, json.loads(tree.attrs[ATTRIBUTE])
    except MemoryError:
        raise
    except Exception as error:  # whatever libraries say about a file that is damaged
        raise unreadable(path, error) from error


def unreadable(path: Path | str, error: Exception) -> InputError:
    """What is told about a file that is none of ours, or damaged."""
    return InputError(
        f"load({str(path)!r})",
        got=f"{type(error).__name__}: {error}",
        expected="a file that Fit.save wrote",
        fix="Check the path.",
    )
