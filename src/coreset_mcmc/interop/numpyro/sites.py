"""What a NumPyro model does with its rows: every site, and how its shapes follow the number of rows.

The model runs abstractly (no arithmetic) on all rows and on two small numbers of rows. An axis that has the length of
the batch each time is a row axis, whatever the plate that made it is called; a size that should follow and does not is
a hard-coded one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.models.independence import num_rows_of

SMALL_COUNTS = (3, 5)
JACOBIAN = "_{}_log_det"
LOCAL_LATENTS = (
    "Integrate it out (e.g. dist.MixtureSameFamily for labels, dist.GammaPoisson or dist.StudentT for scales), or "
    "share it between rows by groups with a plate over groups and an index column."
)


@dataclass(frozen=True)
class Site:
    """One site of one run of the model."""

    name: str
    kind: str
    is_observed: bool
    is_factor: bool
    is_discrete: bool
    value_shape: tuple[int, ...]
    log_prob_shape: tuple[int, ...]
    frames: tuple[tuple[str, int, int], ...]
    """Plates around it: name, axis counted from the right, size."""
    num_batch_axes: int = 0
    event_dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plate:
    """A plate of one run: its size, and how many of its members are in use."""

    size: int
    subsample_size: int | None


@dataclass
class Sites:
    """One run of the model on a number of rows."""

    num_rows: int
    sites: dict[str, Site] = field(default_factory=dict)
    plates: dict[str, Plate] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A NumPyro model and how to call it."""

    function: Callable[..., Any]
    static: Mapping[str, Any]
    arguments: tuple[str, ...]
    """Names of all arguments that the function takes by keyword; empty if it takes any."""

    def keywords(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        absent = {name: None for name in self.arguments if name not in batch and name not in self.static}
        return {**absent, **self.static, **batch}


def run_model(
    source: Source,
    batch: Mapping[str, Any],
    *,
    plate: str | None,
    key: Key,
    latents: Callable[[Any], Any],
    inner: Callable[[Any], Any] = lambda model: model,
) -> dict[str, Any]:
    """The trace of the model on a batch, with the whole batch in its plate and the latents from a handler."""
    from numpyro import handlers

    batch = jax.tree.map(jnp.asarray, dict(batch))
    model = inner(_whole_plate(source.function, plate, num_rows_of(batch)))
    return handlers.trace(latents(handlers.seed(model, key))).get_trace(**source.keywords(batch))


def _whole_plate(function: Callable[..., Any], plate: str | None, num_rows: int) -> Callable[..., Any]:
    """Every row of the batch is in the plate that subsamples rows; other plates must not be random."""
    from numpyro.primitives import Messenger

    class WholePlate(Messenger):
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "plate" and msg["value"] is None and plate in (None, msg["name"]):
                msg["args"] = (msg["args"][0], num_rows)
                msg["value"] = jnp.arange(num_rows)

    return WholePlate(function)


def drawn(record: dict[str, jax.Array], radius: float) -> Callable[[Any], Any]:
    """A handler that draws continuous latents uniformly on the unconstrained scale and writes down what it drew.

    Priors are not asked for draws: improper ones have none, and vague ones have extreme ones.
    """
    from numpyro import handlers
    from numpyro.distributions import biject_to

    def value_of(site: Any) -> Any:
        if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
            return None
        transform = biject_to(site["fn"].support)
        shape = transform.inverse_shape(site["fn"].shape(site["kwargs"].get("sample_shape", ())))
        record[site["name"]] = jax.random.uniform(site["kwargs"]["rng_key"], shape, minval=-radius, maxval=radius)
        return transform(record[site["name"]])

    return lambda model: handlers.substitute(model, substitute_fn=value_of)


def unconstrained(position: Position) -> Callable[[Any], Any]:
    """A handler that gives latents their values from unconstrained numbers and adds the Jacobians as factors."""
    from numpyro import factor, handlers
    from numpyro.distributions import biject_to, constraints

    def value_of(site: Any) -> Any:
        if site["type"] != "sample" or site["is_observed"] or site["name"] not in position:
            return None
        support = site["fn"].support
        transform = biject_to(support)
        given = position[site["name"]]
        base = getattr(support, "base_constraint", support)
        if base is constraints.real:
            return given
        value = transform(given)
        log_det = transform.log_abs_det_jacobian(given, value)
        extra = jnp.ndim(log_det) - jnp.ndim(value) + len(site["fn"].event_shape)
        factor(JACOBIAN.format(site["name"]), log_det.sum(tuple(range(-extra, 0))) if extra > 0 else log_det)
        return value

    return lambda model: handlers.substitute(model, substitute_fn=value_of)


def site_log_prob(site: Any) -> jax.Array:
    """As NumPyro counts it, with masks and scales, before any sum."""
    log_prob = site["fn"].log_prob(site["value"], *([site["intermediates"]] if site["intermediates"] else []))
    return log_prob if site["scale"] is None else site["scale"] * log_prob


def look_at(source: Source, batch: Mapping[str, Any], num_rows: int, plate: str | None) -> Sites:
    """Run the model abstractly on ``num_rows`` rows shaped like those of the batch and write down what it does."""
    import numpyro.distributions as dist

    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_rows, *leaf.shape[1:]), leaf.dtype), batch)
    seen = Sites(num_rows)

    def run(rows: Mapping[str, Any], key: Key) -> Any:
        def note_plates(model: Any) -> Any:
            return _note_plates(model, seen)

        trace = run_model(source, rows, plate=plate, key=key, latents=drawn({}, 1.0), inner=note_plates)
        for name, site in trace.items():
            if site["type"] not in ("sample", "deterministic", "param", "mutable"):
                continue
            is_sample = site["type"] == "sample"
            distribution: Any = site.get("fn") if is_sample else None
            base = distribution
            while isinstance(base, dist.MaskedDistribution | dist.ExpandedDistribution):
                base = base.base_dist
            seen.sites[name] = Site(
                name=name,
                kind=site["type"],
                is_observed=bool(site.get("is_observed", False)),
                is_factor=isinstance(base, dist.Unit),
                is_discrete=is_sample and bool(distribution.support.is_discrete),
                value_shape=tuple(jnp.shape(site["value"])) if is_sample or site["type"] == "deterministic" else (),
                log_prob_shape=tuple(site_log_prob(site).shape) if is_sample else (),
                frames=tuple((frame.name, frame.dim, frame.size) for frame in site.get("cond_indep_stack", ())),
                num_batch_axes=len(distribution.batch_shape) if is_sample else 0,
                event_dims=tuple(site.get("infer", {}).get("event_dims", ())) if is_sample else (),
            )
        return jnp.zeros(())

    try:
        jax.eval_shape(run, shapes, jax.random.key(0))
    except InputError:
        raise
    except Exception as error:
        raise ModelFailedError(seen, error) from error
    return seen


def _note_plates(model: Any, seen: Sites) -> Any:
    from numpyro.primitives import Messenger

    class NotePlates(Messenger):
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "plate":
                seen.plates[msg["name"]] = Plate(*msg["args"])

    return NotePlates(model)


class ModelFailedError(Exception):
    """The model raised; what it did until then is known."""

    def __init__(self, seen: Sites, error: Exception) -> None:
        self.seen = seen
        self.error = error
        text = str(error).strip()
        self.summary = f"{type(error).__name__}: {text.splitlines()[0][:300] if text else ''}"
        super().__init__(self.summary)


@dataclass(frozen=True)
class Structure:
    """Which sites are prior and which are rows."""

    latents: tuple[str, ...]
    row_sites: Mapping[str, int]
    """Observed sites and factors with a value for each row: the axis of rows in their log-probabilities."""
    responses: tuple[str, ...]
    """Those of them that can be drawn anew."""
    shared_sites: tuple[str, ...]
    """All other sites with a log-probability: priors, Jacobians, factors and observations that belong to no row."""
    row_deterministics: Mapping[str, int]
    other_deterministics: tuple[str, ...]
    plate: str | None
    dims: Mapping[str, tuple[str, ...]]


def row_axis(name: str, shapes: list[tuple[int, ...]], counts: list[int]) -> int | None:
    """The axis, counted from the left, that has the length of the batch in every run."""
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        return None
    axes = [
        axis
        for axis in range(ranks.pop())
        if all(shape[axis] == count for shape, count in zip(shapes, counts, strict=True))
    ]
    require(
        len(axes) <= 1,
        f"site {name!r}",
        got=f"{len(axes)} axes that follow the number of rows",
        expected="one value for each row",
        fix="A dependence between pairs of rows (a kernel matrix, say) cannot be summarised by a coreset.",
    )
    return axes[0] if axes else None


def look_at_rows(
    source: Source, batch: Mapping[str, Any], plate: str | None, factors: Mapping[str, str]
) -> tuple[Structure, Sites]:
    """Run on all rows and on few, refuse what cannot be a coreset, and say what each site is."""
    size = num_rows_of(batch)
    counts = [size, *(count for count in SMALL_COUNTS if count < size)]
    require(
        size > max(SMALL_COUNTS),
        "data",
        got=f"{size} rows",
        expected=f"more than {max(SMALL_COUNTS)}",
        fix="With so few rows sample the model directly.",
    )
    whole = _look_at_all_rows(source, batch, size, plate)
    plate = _plate_of(whole, plate)
    runs = [whole, *(_look_at_few_rows(source, batch, count, plate, whole) for count in counts[1:])]
    _refuse_unusable(runs, counts)
    return _structure(runs, counts, plate, factors), runs[-1]


def _look_at_all_rows(source: Source, batch: Mapping[str, Any], size: int, plate: str | None) -> Sites:
    try:
        return look_at(source, batch, size, plate)
    except ModelFailedError as failure:
        uses_values = isinstance(
            failure.error, jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError
        )
        raise InputError(
            "NumPyro model",
            got=failure.summary,
            expected="a model that runs on the data",
            fix=(
                "It uses values of the data as Python numbers (int, len(numpy.unique(...)), if). Compute such numbers "
                'beforehand and pass them with from_numpyro(..., static={"num_groups": 50}).'
                if uses_values
                else "Keys of the data are arguments of the model; other arguments go to from_numpyro(..., static=...)."
            ),
        ) from failure.error


def _look_at_few_rows(source: Source, batch: Mapping[str, Any], count: int, plate: str | None, whole: Sites) -> Sites:
    try:
        return look_at(source, batch, count, plate)
    except ModelFailedError as failure:
        stuck = [name for name, found in failure.seen.plates.items() if found == Plate(whole.num_rows, None)]
        raise InputError(
            "NumPyro model on a few rows",
            got=failure.summary
            + (f"; plate {stuck[0]!r} has the fixed size {whole.num_rows}, the number of all rows" if stuck else ""),
            expected="a model that runs on any number of rows",
            fix=_plate_advice(stuck[0] if stuck else "data"),
        ) from failure.error


def _plate_advice(name: str) -> str:
    return (
        f"Let sizes follow the arguments, e.g. numpyro.plate({name!r}, x.shape[0]), and let the model read rows only "
        "from its arguments, not from arrays around it."
    )


def _plate_of(whole: Sites, plate: str | None) -> str | None:
    """The user's data plate, or the one around observed sites that has all rows."""
    if plate is not None:
        require(
            plate in whole.plates,
            "plate",
            got=repr(plate),
            expected=f"a plate of the model ({sorted(whole.plates)})",
            fix="Leave it out to find the plate around the observed sites.",
        )
        return plate
    names = {
        name
        for site in whole.sites.values()
        if site.is_observed
        for name, _, size in site.frames
        if size == whole.num_rows
    }
    require(
        len(names) <= 1,
        "NumPyro model",
        got=f"plates {sorted(names)} around observed sites, each with as many members as there are rows",
        expected="one plate of rows",
        fix='Say which one it is: from_numpyro(..., plate="data").',
    )
    return names.pop() if names else None


def _refuse_unusable(runs: list[Sites], counts: list[int]) -> None:
    whole, few = runs[0], runs[-1]
    for name, site in few.sites.items():
        if site.kind == "param":
            raise InputError(
                f"param site {name!r}",
                got="a parameter without a prior",
                expected="sample sites",
                fix="Give it a prior with numpyro.sample, a flat one if need be (dist.ImproperUniform).",
            )
        if site.kind == "mutable":
            raise InputError(
                f"mutable site {name!r}",
                got="state that changes between calls",
                expected="a pure function of the data",
                fix="Keep it out of the model.",
            )
    for run in runs:
        for name, found in run.plates.items():
            is_random = found.subsample_size not in (None, found.size, run.num_rows)
            require(
                not is_random,
                f"plate {name!r}",
                got=f"a random subsample of {found.subsample_size} of {found.size}",
                expected="subsampling in the plate of rows alone",
                fix="Leave subsample_size out of other plates; if this is the plate of rows, name it with plate=...",
            )
    for name, site in whole.sites.items():
        require(
            name in few.sites,
            f"site {name!r}",
            got="a site that is missing when there are fewer rows",
            expected="the same sites for any number of rows",
            fix="Do not make sites in a loop over rows; use numpyro.plate.",
        )
        if site.kind == "sample" and not site.is_observed:
            _refuse_latent(name, [run.sites[name] for run in runs], counts)
    for name in few.sites:
        require(
            name in whole.sites,
            f"site {name!r}",
            got="a site that appears only when there are fewer rows",
            expected="the same sites for any number of rows",
            fix="Do not branch on the number of rows.",
        )


def _refuse_latent(name: str, seen: list[Site], counts: list[int]) -> None:
    shapes = [site.value_shape for site in seen]
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
            got="a discrete latent variable",
            expected="continuous parameters",
            fix="Sum it out (e.g. dist.MixtureSameFamily, or jax.scipy.special.logsumexp in a factor), or write a "
            "cm.Model with an integer part and a kernel that moves it.",
        )
    sizes = {size for _, _, size in seen[0].frames}
    require(
        counts[0] not in sizes or counts[0] not in shapes[0],
        f"latent site {name!r}",
        got=f"a plate of the fixed size {counts[0]}, the number of all rows",
        expected="parameters that all rows share",
        fix=f"If it has a value for each row: {LOCAL_LATENTS}",
    )


def _structure(runs: list[Sites], counts: list[int], plate: str | None, factors: Mapping[str, str]) -> Structure:
    few = runs[-1]
    row_sites: dict[str, int] = {}
    shared: list[str] = []
    for name, site in few.sites.items():
        if site.kind != "sample":
            continue
        axis = row_axis(name, [run.sites[name].log_prob_shape for run in runs], counts) if site.is_observed else None
        if axis is None:
            shared.append(name)
        else:
            row_sites[name] = axis
    _check_factors(few, row_sites, factors)
    _check_observed(runs, row_sites, counts)
    deterministics = {
        name: row_axis(name, [run.sites[name].value_shape for run in runs], counts)
        for name, site in few.sites.items()
        if site.kind == "deterministic"
    }
    latents = tuple(name for name, site in few.sites.items() if site.kind == "sample" and not site.is_observed)
    return Structure(
        latents=latents,
        row_sites=row_sites,
        responses=tuple(name for name in row_sites if not few.sites[name].is_factor),
        shared_sites=tuple(shared),
        row_deterministics={name: axis for name, axis in deterministics.items() if axis is not None},
        other_deterministics=tuple(name for name, axis in deterministics.items() if axis is None),
        plate=plate,
        dims={
            name: names
            for name, site in few.sites.items()
            if name in latents or deterministics.get(name, 0) is None
            if (names := _dims_of(site, set(few.sites)))
        },
    )


def _check_factors(few: Sites, row_sites: Mapping[str, int], factors: Mapping[str, str]) -> None:
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


def _check_observed(runs: list[Sites], row_sites: Mapping[str, int], counts: list[int]) -> None:
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
    require(
        bool(row_sites),
        "NumPyro model",
        got="no observed site with a value for each row",
        expected="at least one",
        fix='Pass the response with the data, and observe it: numpyro.sample("y", ..., obs=y).',
    )


def _dims_of(site: Site, site_names: set[str]) -> tuple[str, ...]:
    """Plates name the dimensions of what is in them."""
    num_axes = site.num_batch_axes if site.kind == "sample" else len(site.value_shape)
    names = [f"{site.name}_dim_{axis}" for axis in range(num_axes)]
    for name, axis, size in site.frames:
        if -axis <= num_axes and site.value_shape[num_axes + axis] == size and name not in site_names:
            names[axis] = name
    is_named = any(not name.startswith(f"{site.name}_dim_") for name in names) or site.event_dims
    return (*names, *site.event_dims) if is_named else ()
