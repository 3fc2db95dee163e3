"""NUTS on all rows from over-dispersed starts, kept in files.

Draws are cached in ``FOLDER/NAME-HASH.npz``, HASH over the name, the data and the settings. A cached file is used only
if the model still gives the log-densities stored in it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS

from coreset_mcmc.data import to_array_data
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import starting_positions
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.references.problems import NUM_ROWS, PROBLEMS, ReferenceProblem


@dataclass(frozen=True)
class Settings:
    """How the reference is sampled; part of the key of the cache."""

    draws: int = 2_500
    tune: int = 1_000
    chains: int = 4
    seed: int = 0
    target_accept: float = 0.8


class Reference(NamedTuple):
    """Draws of the full posterior, with every symmetric copy in its share."""

    draws: Draws
    log_density: np.ndarray
    """(chain, draw)"""
    num_divergent: int
    num_gradients: int
    """Leapfrog steps of all kept draws."""
    seconds: float
    """Processor time of sampling, compilation and tuning included; the clock on the wall counts other processes too."""


def cache_key(name: str, data: Any, settings: Settings) -> str:
    """Sixteen hexadecimal digits that change with the name, any bit of the data and any setting."""
    digest = hashlib.sha256(json.dumps([name, asdict(settings)], sort_keys=True).encode())
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def log_density_function(model: Model, data: Any) -> Callable[[Any], jax.Array]:
    """The full log-density of one position."""
    arrays = to_array_data(data).arrays
    return lambda position: model.log_prior(position) + jnp.sum(model.log_likelihood(position, arrays))


def sample(problem: ReferenceProblem, model: Model, data: Any, settings: Settings) -> Reference:
    """Run NUTS from over-dispersed starts, then scatter the draws over the symmetric copies."""
    began = time.process_time()
    start_key, run_key = jax.random.split(jax.random.key(settings.seed))
    flat, unravel = ravel_pytree(
        jax.tree.map(lambda leaf: leaf[0], starting_positions(model, jax.random.key(settings.seed), 1))
    )
    starts = jax.random.uniform(start_key, (settings.chains, flat.size), flat.dtype, -2.0, 2.0)
    log_density = log_density_function(model, data)

    def potential(coordinates: Any) -> jax.Array:
        position, log_jacobian = problem.to_position(coordinates)
        return jnp.asarray(-log_density(position) - log_jacobian)

    nuts = NUTS(
        potential_fn=potential,
        dense_mass=True,
        target_accept_prob=settings.target_accept,
    )
    chains = MCMC(
        nuts,
        num_warmup=settings.tune,
        num_samples=settings.draws,
        num_chains=settings.chains,
        chain_method="sequential",
        progress_bar=False,
    )
    chains.run(
        run_key, init_params=jax.vmap(unravel)(starts), extra_fields=("potential_energy", "diverging", "num_steps")
    )
    sampled = chains.get_samples(group_by_chain=True)
    draws, log_jacobian = jax.vmap(jax.vmap(problem.to_position))(sampled)
    extra = jax.tree.map(np.asarray, chains.get_extra_fields(group_by_chain=True))
    return Reference(
        draws=problem.scatter(np.random.default_rng(settings.seed), jax.tree.map(np.asarray, draws)),
        log_density=-extra["potential_energy"] - np.asarray(log_jacobian),
        num_divergent=int(extra["diverging"].sum()),
        num_gradients=int(extra["num_steps"].sum()),
        seconds=time.process_time() - began,
    )


def save(path: Path, reference: Reference) -> None:
    """Write to a neighbour and rename, so that a file is whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: value for name, value in reference._asdict().items() if name != "draws"}
    arrays |= {f"draws/{name}": values for name, values in reference.draws.items()}
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(path)


def load(path: Path, model: Model, data: Any) -> Reference | None:
    """The cached reference, or None if there is none or it was drawn from another log-density."""
    if not path.exists():
        return None
    with np.load(path) as stored:
        draws = {name.removeprefix("draws/"): stored[name] for name in stored.files if name.startswith("draws/")}
        reference = Reference(
            draws,
            stored["log_density"],
            int(stored["num_divergent"]),
            int(stored["num_gradients"]),
            float(stored["seconds"]),
        )
    log_density = jax.jit(log_density_function(model, data))
    for place in ((0, 0), (-1, -1)):
        value = float(log_density({name: values[place] for name, values in draws.items()}))
        if not np.isclose(value, reference.log_density[place], rtol=1e-9, atol=1e-6):
            return None
    return reference


def reference_draws(name: str, settings: Settings, folder: Path, num_rows: int = NUM_ROWS) -> Reference:
    """Draws of a problem of the table, from the cache if they are there."""
    problem = PROBLEMS[name]
    with jax.enable_x64(True):
        model, data = problem.make(num_rows)
        path = folder / f"{name}-{cache_key(name, data, settings)}.npz"
        reference = load(path, model, data)
        if reference is None:
            reference = sample(problem, model, data, settings)
            save(path, reference)
    return reference
