"""Training and sampling: the two stages of a method, each a run of the driver, with their checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.randomness import fold_in
from coreset_mcmc.core.trees import flat_draws
from coreset_mcmc.core.types import Key
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.fingerprint import fingerprint
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.fitting.plan import Plan
from coreset_mcmc.fitting.precompile import Preparation
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.fitting.rescue import (
    MOST_COORDINATES,
    Mixing,
    joined,
    mixing_of,
    sample_by_slices,
    sample_by_trees,
)
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.tuned_sampling import TunedSampling
from coreset_mcmc.models.model import Model


class Training(NamedTuple):
    """What training has left, and the run that did it."""

    trained: Trained
    run: Run
    identity: str
    """The fingerprint of its checkpoint; empty without one."""


class Sampling(NamedTuple):
    """The info of the draws that are kept, with leading axes (draw, chain), and the run that made them."""

    history: Any
    run: Run


def train(request: Request, model: Model, plan: Plan, key: Key) -> Training:
    """Run the method's training, while later programs are compiled beside it."""
    folder = _folder(request)
    identity = fingerprint(model, plan.method, plan.problem, request.random_seed) if folder else ""
    preparation = Preparation(plan.method, plan.problem, request.chains)
    try:
        training = run(
            plan.method,
            plan.problem,
            key,
            num_steps=plan.method.max_steps,
            callbacks=request.callbacks,
            progressbar=request.progressbar and plan.method.max_steps > 0,
            description="training",
            checkpoint=_checkpoint(request, "training.npz", after_each_step=_reads_rows(plan)),
            fingerprint=identity,
            before_phase=preparation.before_phase if plan.sampling_kernel is None else None,
        )
    except BaseException:
        preparation.give_up()
        raise
    trained = plan.method.finish(training.state, plan.problem, kernel=plan.sampling_kernel, num_chains=request.chains)
    preparation.wait_for_all()
    return Training(trained, training, identity)


def sample(request: Request, training: Training, key: Key) -> Sampling:
    """Draw from what training has left; by NUTS or slices where chains mix badly and the sampler may be replaced."""
    trained, folder = training.trained, _folder(request)
    is_saved = folder is not None and not training.run.is_interrupted
    num_discarded = max(request.tune, trained.sampler.num_tuning)
    sampling = run(
        trained.sampler,
        trained.problem,
        key,
        num_steps=num_discarded + request.draws,
        progressbar=request.progressbar,
        description="sampling",
        checkpoint=_checkpoint(request, "sampling.npz") if is_saved else None,
        fingerprint=fingerprint(training.identity, trained.sampler, trained.problem) if folder else "",
    )
    made = Sampling(_kept(sampling, num_discarded), sampling)
    if trained.sampler.may_be_replaced and not sampling.is_interrupted:
        made = _rescued(request, trained, made, key)
    return made._replace(history=trained.sampler.collect(made.history))


def _rescued(request: Request, trained: Trained, made: Sampling, key: Key) -> Sampling:
    """The best mixing of what was drawn, of trees where that mixes badly, and of slices where trees diverge.

    Ctrl-C ends the search for something better: draws that were complete before are never lost to it.
    """
    found = [(mixing_of(made.history), made)]

    def add(tried: Sampling) -> None:
        found.append((mixing_of(tried.history), tried))

    if found[0][0].is_poor:
        add(_by_trees(request, trained, made, fold_in(key, 1), diverges=found[0][0].diverges))
    if not found[-1][1].run.is_interrupted and found[-1][0].diverges and _num_coordinates(made) <= MOST_COORDINATES:
        add(_by_slices(request, trained, _best_of(found), fold_in(key, 2)))
    best = _best_of([pair for pair in found if not pair[1].run.is_interrupted])
    return best._replace(run=joined([tried.run for _, tried in found], best.run))


def _best_of(found: list[tuple[Mixing, Sampling]]) -> Sampling:
    return max(found, key=lambda pair: pair[0].rank)[1]


def _num_coordinates(made: Sampling) -> int:
    return int(flat_draws(made.history.position).shape[2])


def _by_trees(request: Request, trained: Trained, made: Sampling, key: Key, *, diverges: bool) -> Sampling:
    assert isinstance(trained.sampler, TunedSampling)
    trees = sample_by_trees(
        key,
        trained.sampler,
        replace(trained.problem, initial_positions=made.run.state.chains.position),
        diverges=diverges,
        tune=request.tune,
        draws=request.draws,
        progressbar=request.progressbar,
    )
    return Sampling(_kept(trees, max(request.tune, trained.sampler.num_tuning)), trees)


def _by_slices(request: Request, trained: Trained, made: Sampling, key: Key) -> Sampling:
    last = jax.tree.map(lambda leaf: jnp.asarray(leaf[-1]), made.history.position)
    slices = sample_by_slices(
        key,
        replace(trained.problem, initial_positions=last),
        made.history,
        num_steps=request.tune + request.draws,
        progressbar=request.progressbar,
    )
    return Sampling(_kept(slices, request.tune), slices)


def _folder(request: Request) -> Path | None:
    given = request.checkpoint.path if isinstance(request.checkpoint, Checkpoint) else request.checkpoint
    return Path(given) if given is not None else None


def _checkpoint(request: Request, name: str, *, after_each_step: bool = False) -> Checkpoint | None:
    folder = _folder(request)
    if folder is None:
        return None
    given = request.checkpoint if isinstance(request.checkpoint, Checkpoint) else Checkpoint(folder)
    return replace(given, path=folder / name, seconds=0.0 if after_each_step else given.seconds)


def _reads_rows(plan: Plan) -> bool:
    """Whether a step passes over rows that are not in memory: there are few such steps, and none is cheap to repeat."""
    rows: Any = plan.problem.data
    return isinstance(rows, Rows) and rows.source.whole() is None


def _kept(sampling: Run, tune: int) -> Any:
    """The info of the draws after tuning; at least one."""
    num_discarded = min(tune, max(sampling.num_steps - 1, 0))
    return jax.tree.map(lambda leaf: leaf[num_discarded:], sampling.history)
