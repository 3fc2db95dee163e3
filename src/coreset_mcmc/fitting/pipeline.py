"""One fit with a coreset of a given size, after reading: select, plan, train, sample, check, assemble."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coreset_mcmc.core.trees import chain_first, dimension, first_position
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.diagnostics.mixing import is_better
from coreset_mcmc.fitting.exploring import settings_of, with_exploring
from coreset_mcmc.fitting.final_check import Check, check_coreset
from coreset_mcmc.fitting.folders import inside
from coreset_mcmc.fitting.memory import check_memory
from coreset_mcmc.fitting.plan import Plan, plan, select
from coreset_mcmc.fitting.reading import Reading
from coreset_mcmc.fitting.request import Request
from coreset_mcmc.fitting.stages import Sampling, Training, sample, train
from coreset_mcmc.methods.sizes import default_rows
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.user_scale import shown_names
from coreset_mcmc.models.with_data import observed_of
from coreset_mcmc.posterior.problem import make_problem
from coreset_mcmc.results.build import build_fit
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.fit import Fit

POOR = 0.5
"""Nats above which a coreset without a Gaussian term is tried again with one.

Levels of a factor with few outcomes may have none in a plain coreset, whose posterior then goes to infinity; the term
remembers them.
"""


USELESS = 1.0
"""Nats above which a coreset with a Gaussian term, whose size nobody has chosen, is tried again with as many rows as
parameters call for. On a curved ridge, as of effects of groups times their scale, no quadratic is of use; but each row
reads a few of the parameters, and such rows serve alone.
"""


def fit_best(request: Request, reading: Reading) -> Fit:
    """A fit, and another with or without a Gaussian term where that was the method's own choice and does not serve.

    Of the two the one with the lower estimated KL; an estimate that is NaN is the worst.
    """
    fitted = fit_once(request, reading)
    if not fitted.samples_coreset or fitted.is_interrupted:
        return fitted
    has_term = fitted.has_term
    if fitted.kl_estimate <= (request.kl_target if has_term else max(POOR, request.kl_target)):
        return fitted
    position, size = first_position(reading.positions), fitted.coreset.size
    if has_term and request.coreset_size is None and not fitted.kl_estimate <= USELESS:
        size = max(size, min(default_rows(dimension(position)), reading.rows.size))
    other = reading.method.otherwise(reading.model, position, size, has_term=has_term)
    if other is None:
        return fitted
    folder = inside(request.checkpoint, "without-term" if has_term else "with-term")
    size_asked = request.coreset_size if size == fitted.coreset.size else size
    tried = fit_once(replace(request, checkpoint=folder, coreset_size=size_asked), reading._replace(method=other))
    chosen = tried if is_better(tried.kl_estimate, fitted.kl_estimate) else fitted
    with_it, without = (fitted, tried) if has_term else (tried, fitted)
    estimates = f"with it the estimated KL was {with_it.kl_estimate:.2g}, without {without.kl_estimate:.2g}"
    return chosen.with_settings({"gaussian_term": f"{'yes' if chosen.has_term else 'no'}: {estimates}"})


def fit_once(request: Request, reading: Reading) -> Fit:
    """What :func:`coreset_mcmc.fit` does, but for warnings and for what is tried in turn."""
    selected = select(request, reading)
    problem = make_problem(reading.model, data_for(reading), selected, reading.positions, reading.method.room)
    shown = shown_names(reading.model, problem.position, request.var_names)
    planned = plan(
        problem,
        reading.method,
        request.kernel if request.method is not None else None,
        reading.keys.pilot,
        keeps_rows=request.selection is not None,
        progressbar=request.progressbar,
    )
    training = train(request, reading.model, planned, reading.keys.train)
    sampling = sample(request, training, reading.keys.sample)
    draws = sampling.history.position
    model, trained = planned.problem.model, training.trained
    check = check_coreset(model, reading.rows, trained, draws, reading.positions, request.most_checked)
    return assemble(request, reading, selected, shown, planned, training, sampling, check)


def data_for(reading: Reading) -> Rows | ArrayData:
    """Rows to be passed over, or all of them in the memory of compiled programs, as the method wants them."""
    if reading.method.works_by_passes:
        return reading.rows
    check_memory(reading.method.name, reading.rows)
    return reading.rows.in_programs()


def assemble(
    request: Request,
    reading: Reading,
    selected: SelectedRows,
    shown: list[str],
    planned: Plan,
    training: Training,
    sampling: Sampling,
    check: Check,
) -> Fit:
    """Everything that the stages have left, as one result."""
    model, coreset = reading.model, training.trained.coreset
    has_gone_its_way = training.run.reason in ("converged", "total reached")
    shortfall = planned.method.shortfall(training.run.state) if has_gone_its_way else ""
    return build_fit(
        pilot=with_exploring(planned.pilot, reading.exploring),
        training=training.run,
        sampling=sampling.run,
        history=sampling.history,
        check=check.cost,
        checked=check.surveyed,
        law=training.trained.law,
        coreset=Coreset.of(coreset, reading.rows, planned.problem.position) if coreset is not None else None,
        observed=_observed_rows(model, reading.rows, coreset),
        model=model,
        data=request.data,
        rows=reading.rows,
        var_names=shown,
        settings={
            "random_seed": request.random_seed,
            "model": model.name,
            "method": planned.method.name,
            **({} if coreset is None else planned.method.in_words(planned.problem, coreset)),
            **settings_of(reading, chain_first(sampling.history.position)),
            **({"beyond_the_support": check.beyond} if check.beyond else {}),
            **({"shortfall": shortfall} if shortfall else {}),
        },
        dims={**(model.dims or {}), **(request.dims or {})},
        coords={**(model.coords or {}), **(request.coords or {})},
        recipe=request.recipe(len(selected.indices) or None),
    )


def _observed_rows(model: Model, data: Rows, coreset: SelectedRows | None) -> dict[str, np.ndarray]:
    return {} if coreset is None else observed_of(model, data.take(np.asarray(coreset.indices)))
