"""Coreset MCMC with gradients of all rows, at the settings the authors chose with the true posterior at hand."""

from __future__ import annotations

from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import CASE_OF
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.ours import fitted, model_of
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.sizes import Data

CORESET_SIZE = 500


def run_published(model: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The paper's experiments have the names of their models."""
    budget = Budget(share=effort.share_of_paper, kept=effort.kept)
    plan = CONTESTANTS["coreset-mcmc"].plan(CASE_OF[model](data), budget, CORESET_SIZE, seed)
    return fitted(model_of(model, data), data, seed, **plan.arguments)._replace(note=plan.label)
