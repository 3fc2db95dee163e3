"""What a PyMC model must not be, and what to do instead. What the model is has been found elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.data.convert import wide_arrays
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.interop.pymc.row_sources import Variable

MOST_FEW = 20
"""Rows of which nobody makes a coreset."""


def names_of(variables: Iterable[Variable]) -> list[str]:
    """What the user calls them."""
    return [variable.name for variable in variables]


def check_kind(model: Any) -> None:
    """A PyMC model."""
    require_library("pymc", "from_pymc")
    import pymc

    require(
        isinstance(model, pymc.Model),
        "from_pymc(model)",
        got=type(model).__name__,
        expected="a pymc.Model",
        fix="Pass the object of `with pm.Model() as model:`; a Bambi model goes through cm.from_bambi.",
    )


def check_is_continuous(model: Any) -> None:
    """No free variable that is discrete."""
    discrete = names_of(model.rvs_to_values[rv] for rv in model.free_RVs if not _is_continuous(rv))
    require(
        not discrete,
        "PyMC model",
        got=f"discrete latent variables {discrete}",
        expected="continuous free variables",
        fix="Sum them out: pm.Mixture or pm.NormalMixture for cluster labels, pymc_extras.marginalize for others; or "
        "write log_prior and log_likelihood yourself as a cm.Model, whose positions may be discrete.",
    )


def _is_continuous(rv: Variable) -> bool:
    return str(rv.dtype).startswith("float")


def check_rows_are_no_event(name: str, operation: Any, num_axes: int) -> None:
    """All rows may not be one draw of a process, with one log-density for them together."""
    require(
        getattr(operation, "ndim_supp", 0) < max(num_axes, 1),
        f"observed variable {name!r}",
        got=f"one log-density for all rows together ({type(operation).__name__.removesuffix('RV')})",
        expected="one for each row",
        fix="A coreset cannot stand in for a time series, a Gaussian process over the rows or another dependence "
        "between them: make one row of each independent series, along a first axis.",
    )


def refuse_density(name: str, error: Exception) -> NoReturn:
    """An observed variable whose log-density PyMC itself cannot compute."""
    words = next(iter(str(error).strip().splitlines()), "")
    raise InputError(
        f"observed variable {name!r}",
        got=f"no log-density of such rows in PyMC ({type(error).__name__}{': ' if words else ''}{words})",
        expected="a distribution with a log-density for each row",
        fix="PyMC's own samplers cannot use it either: observe the rows through another distribution, pm.CustomDist or "
        "pm.Potential.",
    ) from error


def check_densities_are_known(densities: Sequence[Variable], names: Sequence[str]) -> None:
    """No log-density may be random, as that of a simulator is."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.op import RandomVariable

    for name, density in zip(names, densities, strict=True):
        is_random = any(
            item.owner is not None and isinstance(item.owner.op, RandomVariable) for item in ancestors([density])
        )
        require(
            not is_random,
            f"observed variable {name!r}",
            got="a log-density that draws random numbers, as that of pm.Simulator does",
            expected="a log-density that is known",
            fix="A simulator without a likelihood has no coreset; use pm.sample_smc.",
        )


def check_named_rows(lengths: Mapping[str, int | None], known: Sequence[str]) -> None:
    """The rows that a user has named: ``lengths`` of their first axes, among the ``known`` terms of the model."""
    unknown = [name for name in lengths if name not in known]
    require(
        bool(lengths) and not unknown,
        "rows",
        got=repr(unknown or list(lengths)),
        expected=f"names of observed variables or potentials, among {list(known)}",
        fix="Pass those whose first axis counts rows.",
    )
    require(
        None not in lengths.values(),
        "rows",
        got=f"lengths {dict(lengths)}",
        expected="a first axis that counts rows",
        fix="A potential must not be summed over the rows. Name fewer variables; the others become prior terms.",
    )


def check_lengths(long: Mapping[str, int], potentials: Mapping[str, int | None], candidates: set[int]) -> None:
    """The number of rows must be clear from the lengths of the observed values, or else of the potentials."""
    require(
        len(candidates) > 0,
        "PyMC model",
        got="no observed variable and no potential with an axis of rows",
        expected="one log-likelihood for each row",
        fix="Give a potential without .sum(), or pass the rows as observed=...",
    )
    longest = max(long, key=lambda name: long[name]) if long else "potential"
    require(
        len(candidates) == 1,
        "PyMC model",
        got=f"observed lengths {dict(long or potentials)}",
        expected="one number of rows",
        fix=f"Which of them are the rows? Pass their names, e.g. cm.from_pymc(model, rows={longest!r}); the others "
        "become prior terms, evaluated in full at every step. If all are, as the parts of a table that was split by a "
        f"mask, name them all, rows={list(long or potentials)}: each part then has rows of its own.",
    )


def check_row_axis(shapes: Mapping[str, tuple[int | None, ...]], size: int) -> None:
    """Few rows of very many columns are rows along the second axis."""
    known = {f"observed {name!r}": tuple(length or 0 for length in shape) for name, shape in shapes.items()}
    advice = wide_arrays(known, size) if size < MOST_FEW else ""
    require(
        not advice,
        "PyMC model",
        got=f"{size} rows",
        expected="rows along the first axis of the observed values",
        fix=f"{advice}With so few rows sample the model itself.",
    )


def check_potential(name: str, length: int | None, size: int, row_names: Sequence[str]) -> None:
    """A potential that uses data of the rows must be of the rows."""
    require(
        length == size,
        f"potential {name!r}",
        got=f"data of the {size} rows, but no axis of rows",
        expected="one value for each row, or no use of the rows",
        fix="If it sums over the rows, leave the sum out: pm.Potential adds up by itself. If it is no part of the "
        f"likelihood, name what is: cm.from_pymc(model, rows={list(row_names) or ['...']}).",
    )


def check_no_row_latents(shapes: Mapping[str, tuple[int, ...]], size: int) -> None:
    """No free variable, of these shapes, with a value for each row."""
    latents = [name for name, shape in shapes.items() if size in shape]
    require(
        not latents,
        "PyMC model",
        got=f"free variables {latents} with one value for each of the {size} rows",
        expected="parameters whose number does not grow with the rows",
        fix="Sum or integrate such latents out (a Student t instead of a scale for each row, a negative binomial "
        "instead of a Poisson with a rate for each row, pm.Mixture instead of labels). A state that runs through time "
        "has no coreset of its time steps; make one row of each independent series.",
    )


def advice_on_sizes(shapes: Mapping[str, tuple[int, ...]], size: int) -> str:
    """What to do if the model cannot be evaluated on a few of its rows."""
    near = [name for name, shape in shapes.items() if size - 1 in shape]
    if near:
        return (
            f"The free variables {near} have almost as many values as there are rows ({size}): latents that belong to "
            "rows, or steps in time. Sum or integrate them out, or make one row of each independent series."
        )
    return (
        f"A size, or an array that the model does not see as data of the rows, fixes their number ({size}). Pass "
        "arrays to the model as they are, rows along the first axis; take sizes from them, as in x.shape[0]; give "
        "data to a CustomDist as its arguments. Several rows that depend on each other, as steps in time or points of "
        "a Gaussian process do, must be one row."
    )
