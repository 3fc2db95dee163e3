"""One line of the catalogue: whether a model converts, its density beside the library's own, whether it has slopes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import potential_energy

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import to_rows
from coreset_mcmc.models.independence import random_positions
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.derivatives import without_missing_derivatives
from coreset_mcmc.posterior.problem import starting_positions
from coreset_mcmc_benchmarks.interop.catalogue.entry import Entry

NUM_POSITIONS = 3
MOST_WORDS = 160


@double_precision
def measure(entry: Entry, size: int) -> dict[str, Any]:
    """``converts``, ``density_error``, ``gradient_free`` and the beginning of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = entry.make(size)
        try:
            model, theirs = _converted(entry.library, source)
        except cm.InputError as error:
            return {"converts": "no", "refusal": re.sub(r" at 0x[0-9a-f]+", "", str(error))[:MOST_WORDS]}
        largest = max(_relative(_total(model, at), theirs(at)) for at in _positions(model))
        found = without_missing_derivatives(model, to_rows(model.data, infinite=True), _starts(model))
    return {
        "converts": "yes",
        "density_error": largest,
        "gradient_free": "no" if found.differentiable else "yes",
        "refusal": "",
    }


def _converted(library: str, source: Any) -> tuple[Model, Callable[[Any], float]]:
    """Our model, bound to its rows, and the library's own log density of a position."""
    if library == "NumPyro":
        bind = cm.from_numpyro(source.model, static=source.static).bind
        assert bind is not None
        arguments = {**jax.tree.map(jnp.asarray, source.data), **source.static}
        return bind(source.data), lambda at: _numpyros(source.model, arguments, at)
    model = cm.from_pymc(source) if library == "PyMC" else cm.from_bambi(source)
    return model, _pymcs(source if library == "PyMC" else source.backend.model)


def _numpyros(model: Callable[..., Any], arguments: Mapping[str, Any], at: Mapping[str, Any]) -> float:
    """NumPyro's own log density of the unconstrained model; with discrete latents it enumerates them by funsor."""
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(**arguments)
    latents = {name: site["fn"].support for name, site in trace.items() if _is_latent(site)}
    if not any(support.is_discrete for support in latents.values()):
        return -float(potential_energy(model, (), arguments, at))
    from numpyro.contrib.funsor import config_enumerate, enum  # noqa: PLC0415 - needs funsor
    from numpyro.contrib.funsor.infer_util import log_density  # noqa: PLC0415

    transforms = {name: biject_to(latents[name]) for name in at}
    values = {name: transforms[name](leaf) for name, leaf in at.items()}
    jacobians = sum(jnp.sum(transforms[name].log_abs_det_jacobian(at[name], values[name])) for name in at)
    return float(log_density(enum(config_enumerate(model), -2), (), arguments, values)[0] + jacobians)


def _is_latent(site: Any) -> bool:
    return bool(site["type"] == "sample" and not site["is_observed"])


def _pymcs(model: Any) -> Callable[[Any], float]:
    """PyMC's own log density, by its reference interpreter, without the latents of missing responses."""
    imputed = [rv for rv in model.free_RVs if rv.name.endswith("_unobserved")]
    terms = [term for term in (*model.basic_RVs, *model.potentials) if term not in imputed]
    density = model.compile_logp(vars=terms, mode="FAST_COMPILE")
    start = model.initial_point(0)
    filled = {model.rvs_to_values[rv].name: start[model.rvs_to_values[rv].name] for rv in imputed}
    return lambda at: float(density({**filled, **jax.tree.map(np.asarray, dict(at))}))


def _starts(model: Model) -> Any:
    return starting_positions(model, jax.random.key(0), 1)


def _positions(model: Model) -> Iterator[Mapping[str, Any]]:
    start = jax.tree.map(lambda leaf: np.asarray(leaf[0]), _starts(model))
    many = random_positions(start, NUM_POSITIONS)
    for place in range(NUM_POSITIONS):
        yield jax.tree.map(lambda leaf, place=place: jnp.asarray(leaf[place]), many)


def _total(model: Model, at: Any) -> float:
    return float(model.log_prior(at) + jnp.sum(model.log_likelihood(at, jax.tree.map(jnp.asarray, model.data))))


def _relative(ours: float, theirs: float) -> float:
    """NaN and infinity are no agreement."""
    difference = abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
    return difference if np.isfinite(difference) else float("inf")
