"""What a NumPyro model must not do with its rows, and what to do instead. What it does has been found elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.interop.numpyro.running import safe
from coreset_mcmc.interop.numpyro.sites import Plate, Site, Sites, row_axis

LOCAL_LATENTS = (
    "Integrate it out (e.g. dist.MixtureSameFamily for labels, dist.GammaPoisson or dist.StudentT for scales), or "
    "share it between rows by groups with a plate over groups and an index column."
)
USES_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""What JAX raises where values of the data decide about shapes or branches."""
MASKED = (
    "It picks rows by their values, as in mu[~censored], so how many there are is not known before. Columns with two "
    "values may do that, outside of plates, and nothing else. Give every row a value instead: "
    "handlers.mask(mask=~censored) around the observed site, and for the others numpyro.factor('censored', "
    "jnp.where(censored, log_survival, 0.0))."
)


def refuse_failure(seen: Sites, batch: Mapping[str, Any]) -> None:
    """A model that does not run on the data."""
    if seen.error is None:
        return
    uses_values = isinstance(seen.error, USES_VALUES)
    raise InputError(
        "NumPyro model",
        got=f"{seen.failure}, with data of the shapes {_shapes(batch)}",
        expected="a model that runs on the data",
        fix=(
            MASKED
            if isinstance(seen.error, jax.errors.NonConcreteBooleanIndexError)
            else "It uses values of the data as Python numbers (int, len(numpy.unique(...)), if). Compute such numbers "
            'beforehand and pass them with from_numpyro(..., static={"num_groups": 50}).'
            if uses_values
            else "Keys of the data are arguments of the model, which must have the shapes that it expects; other "
            "arguments go to from_numpyro(..., static=...)."
        ),
    ) from seen.error


def _shapes(batch: Mapping[str, Any]) -> str:
    shapes = jax.tree.map(lambda leaf: leaf.shape, dict(batch))
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def refuse_failure_on_few_rows(seen: Sites, num_rows: int) -> None:
    """A model that runs on all ``num_rows`` rows and not on a few of them."""
    if seen.error is None:
        return
    stuck = [name for name, found in seen.plates.items() if found == Plate(num_rows, None)]
    plate = stuck[0] if stuck else "data"
    raise InputError(
        "NumPyro model on a few rows",
        got=seen.failure
        + (f"; plate {plate!r} has the fixed size {num_rows}, the number of all rows" if stuck else ""),
        expected="a model that runs on any number of rows",
        fix=f"Let sizes follow the arguments, e.g. numpyro.plate({plate!r}, x.shape[0]), and let the model read rows "
        "only from its arguments, not from arrays around it.",
    ) from seen.error


def refuse_equal_names(seen: Sites) -> None:
    """Names that are the same once slashes are replaced."""
    names = [safe(name) for name in seen.sites]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(
        not twice,
        "NumPyro model",
        got=f"several sites that results would call {', '.join(twice)}",
        expected="names that differ when a dot takes the place of each slash",
        fix="Rename one of them, or pass another divider to handlers.scope.",
    )


def refuse_unusable(runs: list[Sites], counts: list[int]) -> None:
    """Sites that a coreset cannot have, or that come and go with the number of rows."""
    for name, site in runs[-1].sites.items():
        _refuse_kind(name, site)
    for run in runs:
        _refuse_random_plates(run)
    _refuse_other_sites(runs[0], runs[-1])
    says_something = any(site.kind == "sample" and site.is_observed for site in runs[0].sites.values())
    for name, site in runs[0].sites.items():
        if site.kind == "sample" and not site.is_observed:
            _refuse_latent(name, [run.sites[name] for run in runs], counts, may_be_label=says_something)


def _refuse_kind(name: str, site: Site) -> None:
    require(
        site.kind != "param",
        f"param site {name!r}",
        got="a parameter without a prior",
        expected="sample sites",
        fix="Give it a prior with numpyro.sample, a flat one if need be (dist.ImproperUniform).",
    )
    require(
        site.kind != "mutable",
        f"mutable site {name!r}",
        got="state that changes between calls",
        expected="a pure function of the data",
        fix="Keep it out of the model.",
    )


def _refuse_random_plates(run: Sites) -> None:
    for name, found in run.plates.items():
        require(
            found.subsample_size in (None, found.size, run.num_rows),
            f"plate {name!r}",
            got=f"a random subsample of {found.subsample_size} of {found.size}",
            expected="subsampling in the plate of rows alone",
            fix="Leave subsample_size out of other plates; if this is the plate of rows, name it with plate=...",
        )


def _refuse_other_sites(whole: Sites, few: Sites) -> None:
    for name in whole.sites:
        require(
            name in few.sites,
            f"site {name!r}",
            got="a site that is missing when there are fewer rows",
            expected="the same sites for any number of rows",
            fix="Do not make sites in a loop over rows; use numpyro.plate.",
        )
    for name in few.sites:
        require(
            name in whole.sites,
            f"site {name!r}",
            got="a site that appears only when there are fewer rows",
            expected="the same sites for any number of rows",
            fix="Do not branch on the number of rows.",
        )


def _refuse_latent(name: str, seen: list[Site], counts: list[int], *, may_be_label: bool) -> None:
    """``may_be_label``: whether anything is observed, without which a discrete value of each row is a response."""
    shapes = [site.value_shape for site in seen]
    is_of_rows = row_axis(name, [site.log_prob_shape for site in seen], counts) is not None
    if may_be_label and seen[0].num_values and is_of_rows:
        return  # a label of each row, which is summed out
    if len(set(shapes)) > 1:
        follows = any(shape and count in shape for shape, count in zip(shapes, counts, strict=True))
        raise InputError(
            f"latent site {name!r}",
            got=f"shape {shapes[0]} with {counts[0]} rows and {shapes[-1]} with {counts[-1]}",
            expected="parameters that all rows share",
            fix=(
                f"It has a value for each row. {LOCAL_LATENTS} If it is the response, pass its values with the data."
                if follows
                else "Its shape is computed from the rows: compute it beforehand and pass it with static={...}."
            ),
        )
    if seen[0].is_discrete:
        raise InputError(
            f"latent site {name!r}",
            got="a discrete latent variable that all rows share: summed out, it would make rows depend on each other",
            expected="continuous parameters, and discrete latents of single rows (those are summed out)",
            fix="If each row has one, draw it in the plate of rows. Otherwise write a cm.Model with an integer part "
            "and a kernel that moves it, or fit the model once for each of its values and compare.",
        )
    sizes = {size for _, _, size in seen[0].frames}
    require(
        counts[0] not in sizes or counts[0] not in shapes[0],
        f"latent site {name!r}",
        got=f"a plate of the fixed size {counts[0]}, the number of all rows",
        expected="parameters that all rows share",
        fix=f"If it has a value for each row: {LOCAL_LATENTS}",
    )


def check_factors(few: Sites, row_sites: Mapping[str, int], factors: Mapping[str, str]) -> None:
    """A factor must be what the user says it is."""
    known = [name for name, site in few.sites.items() if site.is_factor]
    for name, role in factors.items():
        require(
            name in known and role in ("prior", "row"),
            f"factors[{name!r}]",
            got=repr(role),
            expected=f'"prior" or "row" for one of the factor sites {known}',
            fix='A factor with one value for each row is "row"; one that does not depend on rows is "prior".',
        )
        found = "row" if name in row_sites else "prior"
        require(
            role == found,
            f"factors[{name!r}]",
            got=f"{role!r}, but its log-factor has shape {few.sites[name].log_prob_shape} on {few.num_rows} rows",
            expected=f"{found!r}",
            fix="For a factor of each row pass one value per row, not their sum."
            if role == "row"
            else "A term of the prior must not have a row axis: sum it, or leave it out of the plate of rows.",
        )


def check_observed(runs: list[Sites], row_sites: Mapping[str, int], counts: list[int], *, may_be_empty: bool) -> None:
    """A site in the plate of rows, or one whose value has a row axis, must have a log-probability for each row."""
    for name, site in runs[-1].sites.items():
        if site.kind != "sample" or not site.is_observed or name in row_sites:
            continue
        values = [run.sites[name].value_shape for run in runs]
        if row_axis(name, values, counts) is not None:
            raise InputError(
                f"observed site {name!r}",
                got=f"one log-probability of shape {site.log_prob_shape} for all rows together",
                expected="one for each row",
                fix="Do not declare rows an event (to_event, a multivariate normal over rows, scan): put the site into "
                "numpyro.plate('data', x.shape[0]). Rows that depend on each other have no coreset.",
            )
    lagged = {
        name: site.value_shape[0]
        for name, site in runs[0].sites.items()
        if site.kind == "sample" and site.is_observed and site.value_shape
        if site.value_shape != runs[-1].sites[name].value_shape
    }
    require(
        bool(row_sites) or not lagged,
        "NumPyro model",
        got=f"observed sites with other numbers of values than the {counts[0]} rows ({lagged})",
        expected="one value for each row",
        fix="Lagged values, as in an autoregression over the rows, make rows depend on each other: pass lags as "
        "columns of their own, or make one row of each independent series.",
    )
    require(
        bool(row_sites) or may_be_empty,
        "NumPyro model",
        got="no observed site with a value for each row",
        expected="at least one",
        fix='Pass the response with the data, and observe it: numpyro.sample("y", ..., obs=y).',
    )
