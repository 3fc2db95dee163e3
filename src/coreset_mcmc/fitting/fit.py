"""The front door: from a model and data to draws.

``fit`` selects rows, trains, freezes what it trained and samples. The defaults need no tuning: weights come from least
squares on windows of draws, and the estimated KL says when to stop. Any other method of the registry goes through the
same door; one that moves chains with a kernel and was given none gets a slice kernel shaped by a pilot run.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.data import ArrayData, to_array_data, to_batch
from coreset_mcmc.data.selection import SelectedRows, Selection, Uniform
from coreset_mcmc.diagnostics.mixing import coreset_warnings, sampling_warnings
from coreset_mcmc.driver import checkpoint as checkpoints
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.driver.run import Callback, Run, run
from coreset_mcmc.fitting.final_check import check_coreset
from coreset_mcmc.fitting.pilot import Pilot, run_pilot
from coreset_mcmc.fitting.precompile import Preparation
from coreset_mcmc.fitting.rescue import mixing_of, sample_by_trees
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.gibbs import SpikeAndSlabGibbs
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods import LeastSquares, SparseVI
from coreset_mcmc.methods.contract import Method, check_needs
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.registry import methods_that_work
from coreset_mcmc.methods.sampling import SamplesCoreset
from coreset_mcmc.models.host import users_errors
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.user_scale import shown_names
from coreset_mcmc.models.with_data import bound, observed_of
from coreset_mcmc.posterior.problem import Problem, check_model, make_problem, starting_positions
from coreset_mcmc.results.build import build_fit
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.fit import Fit

DEFAULT_CORESET_SIZE = 500
"""Rows of a coreset, unless there are so many parameters that they call for more."""
NO_ROWS = SelectedRows(np.zeros(0, np.int64), np.zeros(0))
"""For methods that have no coreset."""
SMALLEST_AUTO, LARGEST_FIRST, MAX_SIZES = 100, 5_000, 5
"""Where the search for a coreset size starts at least and at most, and how many sizes it tries."""
RECIPE = ("draws", "tune", "chains", "method", "kernel", "selection", "initvals")
"""Options that a fit remembers besides the number of rows, so that another one like it can be made."""


@double_precision
@users_errors()
def fit(
    model: Model,
    data: Any = None,
    *,
    coreset_size: int | Literal["auto"] | None = None,
    kl_target: float = 0.05,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    method: Method | None = None,
    kernel: Kernel | None = None,
    selection: Selection | None = None,
    initvals: Position | None = None,
    dims: Mapping[str, Any] | None = None,
    coords: Mapping[str, Any] | None = None,
    var_names: Sequence[str] | str | None = None,
    checkpoint: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
) -> Fit:
    """Train a coreset and sample its posterior.

    Args:
        model: log-prior and per-row log-likelihood.
        data: a pytree of arrays with a common leading row axis, or a DataFrame; by default those of the model.
        coreset_size: M, rows in the coreset. By default 500, or with more than 24 parameters d as many as they call
            for, 0.75 d (d + 3), up to 5 000; all rows if there are fewer. "auto" starts from the number that the
            parameters call for and doubles it until the estimated KL is below ``kl_target``;
            ``fit.settings["coreset_size"]`` says what was tried.
        kl_target: in nats. 0.05 is what a shift of one parameter by a third of its standard deviation costs.
        draws: draws kept from each chain.
        tune: draws discarded at the start of sampling; at least the hundred in which trajectories find their step size.
        chains: chains that sample the trained coreset.
        random_seed: the same seed gives the same bits; ``None`` takes a fresh one, which the result remembers.
        method: any method of the registry; by default :class:`LeastSquares`, which needs no tuning.
        kernel: moves the chains. With the default method it trains and samples; with a given method it only samples,
            and the method's own kernel trains. By default Hamiltonian trajectories shaped by the draws so far, a slice
            kernel for models without gradients, or Gibbs sampling for the spike-and-slab regression.
        selection: which rows enter the coreset: :class:`Uniform`, :class:`Stratified` or :class:`Given`. By default the
            rows that matter most, chosen at the mode of a differentiable model; uniform ones otherwise.
        initvals: where chains start instead of the model's own initial position; for a model from a library, values of
            some or all of its parameters by name, on their own scale.
        dims, coords: names of dimensions and their labels, as in ArviZ, beside those of the model.
        var_names: what the group ``posterior`` keeps; "~name" keeps all but that one.
        checkpoint: a folder; the run saves itself there, and the same call resumes from there.
        callbacks: called after each chunk of training; returning True ends training.

    Ctrl-C during training goes on to sampling with the weights so far; during sampling it returns the draws so far.
    """
    options = dict(locals())
    _check_counts(draws, tune, chains)
    require(isinstance(model, Model), "model", got=type(model).__name__, expected="a Model", fix="Build a cm.Model.")
    seed = secrets.randbits(32) if random_seed is None else int(random_seed)
    start_key, pilot_key, train_key, sample_key = jax.random.split(jax.random.key(seed, impl="threefry2x32"), 4)
    data = model.data if data is None else data
    require(
        data is not None,
        "data",
        got="None, and the model holds none",
        expected="arrays with a common leading row axis",
        fix="Pass them: cm.fit(model, data).",
    )
    if coreset_size == "auto":
        return _grow(**{**options, "data": data})
    batch = to_batch(data)
    array_data = to_array_data(batch)
    size = array_data.size
    model = bound(model, batch)
    num_starts = max(chains, (method or LeastSquares()).num_chains)
    positions = starting_positions(model, start_key, num_starts, initvals)
    if method is not None and not method.uses_coreset_rows:
        selected = NO_ROWS
    else:
        is_given = coreset_size is None and selection is not None and hasattr(selection, "indices")
        default = min(max(DEFAULT_CORESET_SIZE, first_size(positions)), size)
        count = default if coreset_size is None and not is_given else coreset_size
        selected = (selection or Uniform()).select(np.random.default_rng(seed), batch, size, count)
    check_model(model, array_data, positions)
    problem = make_problem(model, array_data, selected, positions)
    kept_names = shown_names(model, problem.position, var_names)
    keeps_rows = selection is not None
    plan = make_plan(problem, method, kernel, pilot_key, keeps_rows=keeps_rows, progressbar=progressbar)

    folder = Path(checkpoint) if checkpoint is not None else None
    identity = checkpoints.fingerprint(model, plan.method, plan.problem, seed) if folder else ""
    preparation = Preparation(plan.method, plan.problem, chains)
    try:
        training = run(
            plan.method,
            plan.problem,
            train_key,
            num_steps=plan.method.max_steps,
            callbacks=callbacks,
            progressbar=progressbar and plan.method.max_steps > 0,
            description="training",
            checkpoint=checkpoints.Checkpoint(folder / "training.npz") if folder else None,
            fingerprint=identity,
            before_phase=preparation.before_phase if plan.sampling_kernel is None else None,
        )
    except BaseException:
        preparation.give_up()
        raise
    trained = plan.method.finish(training.state, plan.problem, kernel=plan.sampling_kernel, num_chains=chains)
    preparation.wait_for_all()
    num_discarded = max(tune, getattr(trained.sampler, "num_tuning", 0))
    sampling = run(
        trained.sampler,
        trained.problem,
        sample_key,
        num_steps=num_discarded + draws,
        progressbar=progressbar,
        description="sampling",
        checkpoint=checkpoints.Checkpoint(folder / "sampling.npz") if folder and not training.is_interrupted else None,
        fingerprint=checkpoints.fingerprint(identity, trained.sampler, trained.problem) if folder else "",
    )
    history = _kept(sampling, num_discarded)
    if _may_be_rescued(plan, sampling) and (poor := mixing_of(history)).is_poor:
        trees = sample_by_trees(
            jax.random.fold_in(sample_key, 1),
            trained.problem.target,
            sampling.state.chains.position,
            tune=tune,
            draws=draws,
            progressbar=progressbar,
        )
        if mixing_of(_kept(trees, tune)).ess > poor.ess:
            sampling, history = _joined(sampling, trees), _kept(trees, tune)
    if hasattr(trained.sampler, "collect"):
        history = trained.sampler.collect(history)
    law = _law(trained.sampler, plan.method)
    kl_estimate, check = check_coreset(plan.problem, trained.coreset if law is Law.CORESET else None, history.position)
    fitted = build_fit(
        pilot=Cost.of(*(plan.pilot.rounds if plan.pilot else ())),
        training=training,
        sampling=sampling,
        history=history,
        check=check,
        law=law,
        kl_estimate=kl_estimate,
        coreset=Coreset.of(trained.coreset, array_data) if trained.coreset is not None else None,
        observed=_observed_rows(model, array_data, trained.coreset),
        model=model,
        data=data,
        var_names=kept_names,
        settings={"random_seed": seed, "model": model.name, "method": plan.method.name},
        dims={**(model.dims or {}), **(dims or {})},
        coords={**(model.coords or {}), **(coords or {})},
        recipe={name: options[name] for name in RECIPE} | {"coreset_size": len(selected.indices) or None},
    )
    for message in [*sampling_warnings(fitted.tree), *(coreset_warnings(kl_estimate) if law is Law.CORESET else [])]:
        warnings.warn(message, stacklevel=4)
    return fitted


def _law(sampler: Any, method: Method) -> Law:
    if isinstance(sampler, SamplesCoreset):
        return Law.CORESET
    return Law.FULL if method.name == "nuts" else Law.APPROXIMATE


def _kept(sampling: Run, tune: int) -> Any:
    """The info of the draws after tuning; at least one."""
    num_discarded = min(tune, max(sampling.num_steps - 1, 0))
    return jax.tree.map(lambda leaf: leaf[num_discarded:], sampling.history)


def _may_be_rescued(plan: Plan, sampling: Run) -> bool:
    """Whether the kernel was ours to choose, on a model with gradients."""
    is_default = isinstance(plan.method, LeastSquares) and plan.method.samples_by_trajectories(plan.problem)
    return is_default and plan.sampling_kernel is None and not sampling.is_interrupted


def _joined(first: Run, second: Run) -> Run:
    """The second run, with what the first has taken."""
    return replace(
        second,
        seconds=first.seconds + second.seconds,
        compile_seconds=first.compile_seconds + second.compile_seconds,
        num_evaluations=first.num_evaluations + second.num_evaluations,
    )


def _observed_rows(model: Model, data: ArrayData, coreset: SelectedRows | None) -> dict[str, np.ndarray]:
    return {} if coreset is None else observed_of(model, data.take(np.asarray(coreset.indices)))


def _grow(*, model: Model, data: Any, kl_target: float, coreset_size: Any, **options: Any) -> Fit:
    """Fit with more and more rows until the estimated KL is low enough, or more rows make no sense."""
    del coreset_size
    method, selection, checkpoint = (options[name] for name in ("method", "selection", "checkpoint"))
    require_positive("kl_target", kl_target)
    require(
        (method is None or method.uses_coreset_rows) and not hasattr(selection, "indices"),
        'coreset_size="auto"',
        got="a method without a coreset, or given rows",
        expected="a method that selects rows",
        fix="Leave coreset_size out.",
    )
    seed = secrets.randbits(32) if options["random_seed"] is None else int(options["random_seed"])
    batch = to_batch(data)
    size = to_array_data(batch).size
    start = starting_positions(bound(model, batch), jax.random.key(0), 1, options["initvals"])
    most = max(size // 2, 1)
    count = min(first_size(start), most)
    tried: list[tuple[int, float]] = []
    while True:
        folder = Path(checkpoint) / f"rows-{count}" if checkpoint is not None else None
        own = {**options, "random_seed": seed, "checkpoint": folder, "coreset_size": count}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = fit(model, data, **own)
        tried.append((count, fitted.kl_estimate))
        is_good = fitted.kl_estimate <= kl_target
        if is_good or count >= most or len(tried) == MAX_SIZES or fitted.is_interrupted:
            break
        count = min(2 * count, most)
    for warning in caught:
        warnings.warn(str(warning.message), warning.category, stacklevel=5)
    history = ", then ".join(f"{number} rows gave {estimate:.2g} nats" for number, estimate in tried)
    verdict = "at or below" if is_good else "still above"
    reason = f"{history}: {verdict} the target of {kl_target:g}"
    return fitted.with_settings({"coreset_size": f"auto: {reason}"})


def first_size(starts: Position) -> int:
    """Rows that the parameters call for: a quadratic in d variables has d (d + 3) / 2 coefficients to match.

    ``starts`` are positions with a leading chain axis.
    """
    dimension = sum(leaf[0].size for leaf in jax.tree.leaves(starts))
    return min(max(SMALLEST_AUTO, round(0.75 * dimension * (dimension + 3))), LARGEST_FIRST)


class Plan(NamedTuple):
    """How a problem is going to be trained and sampled."""

    problem: Problem
    method: Method
    sampling_kernel: Kernel | None
    """The kernel that samples instead of the method's own."""
    pilot: Pilot | None


def make_plan(
    problem: Problem,
    method: Method | None,
    kernel: Kernel | None,
    key: Key,
    *,
    keeps_rows: bool = False,
    progressbar: bool = False,
) -> Plan:
    """Check that the method can work, and find a kernel for a method that wants one and was given none.

    ``keeps_rows``: the rows of the problem are the user's choice, which no method replaces by its own.
    """
    if method is None:
        method, kernel = LeastSquares(kernel=kernel), None
    if isinstance(method, LeastSquares) and keeps_rows:
        method = replace(method, chooses_rows=False)
    check_needs(method.name, method.needs, problem, methods_that_work(problem.model, problem.position))
    if isinstance(method, SparseVI) and method.coreset_size is None:
        method = replace(method, coreset_size=problem.coreset_size)
    wants_kernel = hasattr(method, "kernel") and method.kernel is None
    if wants_kernel and kernel is None and problem.model.spike_and_slab is not None:
        method = replace(method, kernel=SpikeAndSlabGibbs())  # type: ignore[type-var]
        wants_kernel = False
    method.check(problem)
    if not wants_kernel or kernel is not None or isinstance(method, LeastSquares):
        return Plan(problem, method, kernel, None)
    pilot = run_pilot(problem, key, progressbar=progressbar)
    shaped = HitAndRunSlice(scale=pilot.scale)
    return Plan(
        replace(problem, initial_positions=pilot.positions),
        replace(method, kernel=shaped),  # type: ignore[type-var]
        replace(shaped, num_directions=pilot.scale.shape[0]),
        pilot,
    )


def _check_counts(draws: int, tune: int, chains: int) -> None:
    require_count("draws", draws, at_least=1, fix="Pass how many draws to keep from each chain.")
    require_count("tune", tune, at_least=0, fix="Leave it out for the default.")
    require_count("chains", chains, at_least=1, fix="Four chains let R-hat tell whether they agree.")
