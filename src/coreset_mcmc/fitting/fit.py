"""The front door: from a model and data to draws.

``fit`` reads, selects rows, plans, trains, samples, checks and assembles (:mod:`coreset_mcmc.fitting.pipeline`). The
defaults need no tuning: weights come from least squares on draws, and the estimated KL says when to stop. Any other
method goes through the same door; one that moves chains with a kernel and was given none gets the kernel made for its
model, or a slice kernel shaped by a pilot run.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.selection import Selection
from coreset_mcmc.diagnostics.mixing import coreset_warnings, sampling_warnings
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.driver.run import Callback
from coreset_mcmc.fitting.auto_size import fit_growing
from coreset_mcmc.fitting.exploring import explore, mode_warnings
from coreset_mcmc.fitting.pipeline import fit_best
from coreset_mcmc.fitting.reading import read
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.methods.sizes import advice_for_few_rows, hardly_pays
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.modes.found import nats_left_out
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.left_out import kl_where_draws_are


@entry_point
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
    checkpoint: Checkpoint | Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    engine: Engine | None = None,
) -> Fit:
    """Train a coreset and sample its posterior.

    Args:
        model: log-prior and per-row log-likelihood.
        data: a pytree of arrays with a common leading row axis, a DataFrame, or a scan of files
            (:func:`scan_parquet`), which may be larger than memory; by default those of the model.
        coreset_size: M, rows in the coreset. By default 500, or with more than 250 parameters two for each, up to
            1 500; all rows if there are fewer. With fewer rows than 0.75 d (d + 3) for d parameters, which is the case
            from 25 parameters on by default, the default method adds a Gaussian term; ``fit.settings["gaussian_term"]``
            says so, and why; where the term leaves more than a nat, more rows are tried without it. Methods without
            such a term get 0.75 d (d + 3) rows, from 500 up to 5 000. "auto" doubles the number of rows until the
            estimated KL is below ``kl_target``; ``fit.settings["coreset_size"]`` says what was tried.
        kl_target: in nats. 0.05 is what a shift of one parameter by a third of its standard deviation costs.
        draws: draws kept from each chain.
        tune: draws discarded at the start of sampling; at least the hundred in which trajectories find their step size.
        chains: chains that sample the trained coreset.
        random_seed: the same seed gives the same bits; ``None`` takes a fresh one, which the result remembers.
        method: any method of the registry; by default :class:`LeastSquares`, which needs no tuning.
        kernel: moves the chains. With the default method it trains and samples; with a given method it only samples,
            and the method's own kernel trains. By default Hamiltonian trajectories shaped by the draws so far, a slice
            kernel for models without gradients, or Gibbs sampling for the spike-and-slab regression.
        selection: which rows enter the coreset: ``cm.selection.Uniform()``, ``Stratified(...)`` or ``Given(...)``. By
            default the rows that matter most, chosen at the mode of a differentiable model; uniform ones otherwise.
        initvals: where chains start instead of the model's own initial position; for a model from a library, values of
            some or all of its parameters by name, on their own scale.
        dims, coords: names of dimensions and their labels, as in ArviZ, beside those of the model.
        var_names: what the group ``posterior`` keeps; "~name" keeps all but that one.
        checkpoint: a folder; the run saves itself there, and the same call resumes from there. A
            :class:`Checkpoint` says more, such as whether every row is compared with those of the first call.
        callbacks: called after each chunk of training; returning True ends training.
        engine: who passes over the rows: by default this process; :class:`Dask` or :class:`Ray` for a cluster.

    Ctrl-C during training goes on to sampling with the weights so far; during sampling it returns the draws so far.
    """
    request = Request(
        model=model,
        data=model.data if data is None and isinstance(model, Model) else data,
        coreset_size=coreset_size,
        kl_target=kl_target,
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=secrets.randbits(32) if random_seed is None else int(random_seed),
        progressbar=progressbar,
        method=method,
        kernel=kernel,
        selection=selection,
        initvals=initvals,
        dims=dims,
        coords=coords,
        var_names=var_names,
        checkpoint=checkpoint,
        callbacks=callbacks,
        engine=engine,
    )
    fitted = fit_in_silence(request)
    for message in _warnings_about(request, fitted):
        warnings.warn(message, stacklevel=3)
    return fitted


def fit_in_silence(request: Request) -> Fit:
    """What :func:`fit` does, but for warnings."""
    request.check()
    with show_passes(request.progressbar):
        reading = explore(read(request))
        fitted = fit_growing(request, reading) if request.coreset_size == "auto" else fit_best(request, reading)
    left_out = nats_left_out(float(fitted.settings.get("other_modes", 0.0))) if fitted.samples_coreset else 0.0
    return replace(fitted, kl_estimate=fitted.kl_estimate + left_out) if left_out else fitted


def _warnings_about(request: Request, fitted: Fit) -> list[str]:
    beyond = str(fitted.settings.get("beyond_the_support", ""))
    about_coreset = coreset_warnings(kl_where_draws_are(fitted), beyond) if fitted.samples_coreset else []
    if request.coreset_size is None and fitted.samples_coreset:
        about_coreset = [*about_coreset, *_about_size(len(fitted.coreset.indices), fitted.coreset.num_rows)]
    about_training = [str(fitted.settings["shortfall"])] if "shortfall" in fitted.settings else []
    return [*about_training, *mode_warnings(fitted.settings), *sampling_warnings(fitted.tree), *about_coreset]


def _about_size(size: int, num_rows: int) -> list[str]:
    """Of a size that nobody has chosen."""
    instead = "method=cm.Laplace() and method=cm.NUTS()"
    return [advice_for_few_rows(size, num_rows, instead)] if hardly_pays(size, num_rows) else []
