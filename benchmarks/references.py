"""Reference draws of full posteriors that a Gaussian at the mode does not describe, checked before anyone trusts them.

For each problem of the table ``PROBLEMS``: NUTS on all rows (NumPyro, double precision, chains started uniformly in
[-2, 2] in every coordinate), then

- rank-normalised R-hat below 1.01 and the smallest bulk ESS (Vehtari et al. 2021), and no divergent transition;
- how far the Laplace approximation is: the two-moment KL from it to the reference, and the share of its draws that
  survives importance weighting, (sum w)^2 / (n sum w^2), which is 1 where the posterior is that Gaussian.

Some posteriors have exact symmetries that NUTS never crosses: labels of a mixture, signs of a product. Each draw is
moved by a random element of that group, which leaves the posterior as it is, so that all copies have their exact share.
The checks look at functions that do not change under the group: every draw folded onto one copy, and what the data
identifies.

Draws are cached in ``FOLDER/NAME-HASH.npz``, HASH over the name, the data and the settings. A cached file is used only
if the model still gives the log-densities stored in it.

    python benchmarks/references.py [--model NAME ...] [--draws 2500] [--tune 1000] [--chains 4] [--out references]

It prints one line of Markdown for each problem and exits with 1 if a reference fails its checks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base.array import array_stats
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS

from coreset_mcmc import models
from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.diagnostics.metrics import bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearch, approximation_at, find_mode
from coreset_mcmc.posterior.problem import make_problem, starting_positions

DATA_SEED = 2_024
MAX_RHAT = 1.01
NUM_LAPLACE_DRAWS = 20_000
NUM_WEIGHTS = 4_000
"""Laplace draws that are weighted."""

Draws = dict[str, np.ndarray]
"""Variables with leading axes (chain, draw)."""


def unchanged(draws: Draws) -> Draws:
    """The fold of a posterior without symmetries."""
    return draws


def as_they_are(position: Any) -> tuple[Any, float]:
    """Coordinates of NUTS that are those of the model."""
    return position, 0.0


def not_moved(rng: np.random.Generator, draws: Draws) -> Draws:
    """The random group element of a posterior without symmetries."""
    del rng
    return draws


@dataclass(frozen=True)
class ReferenceProblem:
    """A model with its data, and what is known about its symmetries.

    Args:
        make: returns the model and the data.
        fold: maps every draw to one representative of its symmetric copies.
        scatter: moves every draw by an independent, uniformly random element of the group.
        identified: further functions of a folded draw whose R-hat and ESS are checked.
        to_position: from the coordinates in which NUTS moves, held like a position, to the position and the log of the
            Jacobian; for a posterior that no trajectory follows in the coordinates of its model.
        target_accept: of NUTS; higher where the posterior is narrow and curved.
    """

    make: Callable[[], tuple[Model, Any]]
    fold: Callable[[Draws], Draws] = unchanged
    scatter: Callable[[np.random.Generator, Draws], Draws] = not_moved
    identified: Callable[[Draws], Draws] = lambda folded: {}
    to_position: Callable[[Any], tuple[Any, Any]] = as_they_are
    target_accept: float = 0.8


def gaussian_mixture() -> tuple[Model, Any]:
    """Two overlapping components."""
    return models.gaussian_mixture(2), models.gaussian_mixture_data(np.random.default_rng(DATA_SEED))


def permuted(draws: Draws, order: np.ndarray) -> Draws:
    """Components of every variable taken in ``order`` (chain, draw, component)."""
    return {name: np.take_along_axis(values, order, axis=-1) for name, values in draws.items()}


def sorted_by_mean(draws: Draws) -> Draws:
    """Components in ascending order of their means."""
    return permuted(draws, np.argsort(draws["means"], axis=-1))


def relabelled(rng: np.random.Generator, draws: Draws) -> Draws:
    """Components in random order."""
    return permuted(draws, np.argsort(rng.random(draws["means"].shape), axis=-1))


def unidentified_regression() -> tuple[Model, Any]:
    """The product of two factors."""
    data = models.unidentified_regression_data(np.random.default_rng(DATA_SEED))
    return models.unidentified_regression(), data


def first_factor_positive(draws: Draws) -> Draws:
    """The branch on which the first factor is positive."""
    return {**draws, "factors": draws["factors"] * np.where(draws["factors"][..., :1] < 0, -1.0, 1.0)}


def sign_flipped(rng: np.random.Generator, draws: Draws) -> Draws:
    """Both factors with a common random sign."""
    signs = rng.choice([-1.0, 1.0], size=(*draws["factors"].shape[:-1], 1))
    return {**draws, "factors": draws["factors"] * signs}


def product_of_factors(folded: Draws) -> Draws:
    """What the data identifies."""
    return {"product": folded["factors"].prod(axis=-1)}


def factors_from_product(coordinates: Any) -> tuple[Any, jax.Array]:
    """(v, p) to the factors a = sqrt|p| e^u and b = p/a with sinh u = v: the half-plane a > 0, straightened.

    (a, b) to (u, p) has Jacobian 1, and in v the prior along the curve is a Gaussian. In (a, b) itself NUTS diverges on
    the bends and its ESS is a tenth of the draws.
    """
    slant, product = coordinates["factors"]
    root, log_ratio = jnp.sqrt(jnp.abs(product)), jnp.arcsinh(slant)
    factors = jnp.stack([root * jnp.exp(log_ratio), jnp.sign(product) * root * jnp.exp(-log_ratio)])
    return {**coordinates, "factors": factors}, -0.5 * jnp.log1p(slant**2)


def hierarchical_logistic_regression() -> tuple[Model, Any]:
    """50 groups of unequal sizes."""
    data = models.hierarchical_logistic_regression_data(np.random.default_rng(DATA_SEED))
    return models.hierarchical_logistic_regression(3, 50), data


def bradley_terry() -> tuple[Model, Any]:
    """40 players, most of whom play seldom."""
    data = models.bradley_terry_data(np.random.default_rng(DATA_SEED), num_players=40)
    return models.bradley_terry(40), data


PROBLEMS: dict[str, ReferenceProblem] = {
    "gaussian-mixture": ReferenceProblem(gaussian_mixture, sorted_by_mean, relabelled, target_accept=0.99),
    "unidentified-regression": ReferenceProblem(
        unidentified_regression, first_factor_positive, sign_flipped, product_of_factors, factors_from_product, 0.9
    ),
    "hierarchical-logistic-regression": ReferenceProblem(hierarchical_logistic_regression, target_accept=0.9),
    "bradley-terry": ReferenceProblem(bradley_terry),
}


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
        return -log_density(position) - log_jacobian

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
    others = {name: np.asarray(value) for name, value in reference._asdict().items() if name != "draws"}
    draws = {f"draws/{name}": values for name, values in reference.draws.items()}
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **draws, **others)
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


def reference_draws(name: str, settings: Settings, folder: Path) -> Reference:
    """Draws of a problem of the table, from the cache if they are there."""
    problem = PROBLEMS[name]
    with jax.enable_x64(True):
        model, data = problem.make()
        path = folder / f"{name}-{cache_key(name, data, settings)}.npz"
        reference = load(path, model, data)
        if reference is None:
            reference = sample(problem, model, data, settings)
            save(path, reference)
    return reference


def flattened(draws: Draws) -> np.ndarray:
    """(chain, draw, d), variables in alphabetical order as JAX flattens them."""
    return np.concatenate([draws[name].reshape(*draws[name].shape[:2], -1) for name in sorted(draws)], axis=-1)


class Convergence(NamedTuple):
    """Whether the chains agree, over all symmetry-invariant functions."""

    rhat: float
    ess: float


def convergence(problem: ReferenceProblem, draws: Draws) -> Convergence:
    """The largest R-hat and the smallest bulk ESS."""
    folded = problem.fold(draws)
    values = flattened({**folded, **problem.identified(folded)})
    rhats = np.asarray(array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank"))
    return Convergence(float(rhats.max()), float(bulk_ess(values).min()))


class LaplaceDistance(NamedTuple):
    """How far the Gaussian at the mode is from the posterior."""

    kl: float
    """Two-moment KL to the reference."""
    folded_kl: float
    """The same after folding both onto one copy: what is left if the symmetry were known."""
    floor: float
    """What draws of the reference itself would score."""
    surviving: float
    """Share of its draws that importance weighting leaves."""
    worst_shift: float
    """Largest distance of a folded mean from its true place, in posterior standard deviations."""


def mode_near(model: Model, data: Any, position: Any) -> LaplaceApproximation | None:
    """The package's own Laplace approximation, searched from a position; None if it finds no peak."""
    arrays = to_array_data(data)
    starts = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], position)
    selected = Uniform().select(np.random.default_rng(0), data, arrays.size, 1)
    search = jax.jit(lambda problem: find_mode(problem, NewtonSearch()))
    state, info = search(make_problem(model, arrays, selected, starts))
    return approximation_at(state) if int(info.status) == Status.OK.value else None


def laplace_distance(
    problem: ReferenceProblem, model: Model, data: Any, reference: Reference, ess: float
) -> LaplaceDistance | None:
    """Compare with the Gaussian at the mode reached from the best draw; None if there is no such mode."""
    best = np.unravel_index(int(np.argmax(reference.log_density)), reference.log_density.shape)
    highest = {name: values[best] for name, values in reference.draws.items()}
    approximation = mode_near(model, data, highest)
    if approximation is None:
        return None
    unravel = ravel_pytree(jax.tree.map(jnp.asarray, highest))[1]
    noise = np.random.default_rng(1).normal(size=(NUM_LAPLACE_DRAWS, approximation.mean.size))
    flat = approximation.draws(jnp.asarray(noise))
    theirs = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.vmap(unravel)(flat))

    def kl(of: Draws, to: Draws) -> float:
        pooled = flattened(to).reshape(-1, flat.shape[1])
        return two_moment_kl(flattened(of), pooled.mean(axis=0), np.cov(pooled, rowvar=False))

    ours_folded, theirs_folded = flattened(problem.fold(reference.draws)), flattened(problem.fold(theirs))
    shifts = (theirs_folded.mean(axis=(0, 1)) - ours_folded.mean(axis=(0, 1))) / ours_folded.std(axis=(0, 1))
    log_density = log_density_function(model, data)
    log_target = jax.jit(lambda chosen: jax.lax.map(lambda at: log_density(unravel(at)), chosen, batch_size=20))
    log_weights = np.asarray(log_target(flat[:NUM_WEIGHTS])) + 0.5 * np.sum(noise[:NUM_WEIGHTS] ** 2, axis=1)
    weights = np.exp(log_weights - log_weights.max())
    return LaplaceDistance(
        kl=kl(theirs, reference.draws),
        folded_kl=kl(problem.fold(theirs), problem.fold(reference.draws)),
        floor=two_moment_kl_floor(flat.shape[1], min(ess, NUM_LAPLACE_DRAWS)),
        surviving=float(weights.sum() ** 2 / (weights @ weights) / NUM_WEIGHTS),
        worst_shift=float(np.abs(shifts).max()),
    )


def report(name: str, settings: Settings, folder: Path) -> bool:
    """Make or load one reference, print its line, and say whether it passed."""
    problem = PROBLEMS[name]
    reference = reference_draws(name, settings, folder)
    chains = convergence(problem, reference.draws)
    with jax.enable_x64(True):
        model, data = problem.make()
        laplace = laplace_distance(problem, model, data, reference, chains.ess)
    size, dimension = len(jax.tree.leaves(data)[0]), flattened(reference.draws).shape[-1]
    steps = reference.num_gradients / reference.log_density.size
    cells = [
        name,
        f"{size:,}",
        f"{dimension}",
        f"{reference.log_density.size:,}",
        f"{steps:.0f}",
        f"{reference.seconds:.0f}",
        f"{chains.rhat:.4f}",
        f"{chains.ess:,.0f}",
        f"{reference.num_divergent}",
    ]
    if laplace is None:
        cells += ["no peak", "-", "-", "-", "-"]
    else:
        cells += [f"{laplace.kl:.3g}", f"{laplace.folded_kl:.3g}", f"{laplace.floor:.2g}"]
        cells += [f"{laplace.worst_shift:.2f}", f"{100 * laplace.surviving:.2g} %"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return chains.rhat < MAX_RHAT and reference.num_divergent == 0


HEADINGS = (
    "problem",
    "N",
    "d",
    "draws",
    "gradients per draw",
    "CPU s",
    "R-hat",
    "bulk ESS",
    "divergent",
    "Laplace KL",
    "folded KL",
    "floor",
    "worst shift",
    "surviving",
)


def main() -> int:
    """Make the references asked for and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--draws", type=int, default=Settings.draws, help="kept from each chain")
    parser.add_argument("--tune", type=int, default=Settings.tune, help="discarded from each chain")
    parser.add_argument("--chains", type=int, default=Settings.chains)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--out", type=Path, default=Path("references"), help="folder of the cache")
    options = parser.parse_args()
    print("| " + " | ".join(HEADINGS) + " |")
    print("|---" * len(HEADINGS) + "|", flush=True)
    passed = []
    for name in options.model:
        settings = Settings(options.draws, options.tune, options.chains, options.seed, PROBLEMS[name].target_accept)
        passed.append(report(name, settings, options.out))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
