"""One side of the comparison in a process of its own: ``python -m ... one_side TASK.json``.

The task names the model, the number of rows, the side (``ours`` or ``nuts``) and where the answer goes: of every
parameter the mean, the standard deviation and their Monte Carlo errors, and what it cost. Seconds count from the time
when all three libraries are imported, so making the model, converting it and compiling are part of both sides.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import arviz_base
import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import Draws, draws_of
from coreset_mcmc_benchmarks.interop.catalogue.entry import Entry
from coreset_mcmc_benchmarks.interop.libraries.chosen import CHOSEN

SAMPLING = {"chains": 2, "cores": 1, "random_seed": 0, "progressbar": False}
COLUMNS = ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "r_hat")


def processor_seconds() -> float:
    """Of this process and those it started, such as a compiler."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def ours(entry: Entry, source: Any) -> tuple[Draws, dict[str, Any]]:
    """``cm.fit`` with all its defaults."""
    if entry.library == "NumPyro":
        fit = cm.fit(cm.from_numpyro(source.model, static=source.static), source.data, random_seed=0, progressbar=False)
    else:
        model = cm.from_pymc(source) if entry.library == "PyMC" else cm.from_bambi(source)
        fit = cm.fit(model, random_seed=0, progressbar=False)
    diverging = fit.tree["sample_stats"].to_dataset().get("diverging")
    return draws_of(fit), {
        "divergences": 0 if diverging is None else int(diverging.sum()),
        "kl_estimate": float(fit.kl_estimate),
        "coreset_size": len(fit.coreset.indices),
        "parameters": sum(int(np.prod(np.shape(leaf)[2:])) for leaf in _positions(fit)),
    }


def _positions(fit: cm.Fit) -> list[Any]:
    group = "unconstrained_posterior" if "unconstrained_posterior" in fit.tree.children else "posterior"
    return [values.to_numpy() for values in fit.tree[group].to_dataset().data_vars.values()]


def nuts(entry: Entry, source: Any, draws: int) -> tuple[Draws, dict[str, Any]]:
    """The library's own, on all rows, two chains one after the other, in double precision."""
    if entry.library == "NumPyro":
        return _numpyro_nuts(source, draws)
    if entry.library == "PyMC":
        import pymc as pm  # noqa: PLC0415 - one library in one process

        with source:
            tree = pm.sample(draws, tune=draws, **SAMPLING)
    else:
        tree = source.fit(draws=draws, tune=draws, **SAMPLING)
    found = {str(name): values.to_numpy() for name, values in tree["posterior"].data_vars.items()}
    return found, {"divergences": int(tree["sample_stats"]["diverging"].sum())}


def _numpyro_nuts(case: Any, draws: int) -> tuple[Draws, dict[str, Any]]:
    from numpyro.infer import MCMC, NUTS  # noqa: PLC0415 - one library in one process

    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(case.model), num_warmup=draws, num_samples=draws, num_chains=2, progress_bar=False,
            chain_method="sequential",
        )  # fmt: skip
        mcmc.run(jax.random.key(0), **jax.tree.map(jnp.asarray, case.data), **case.static)
        found = {name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()}
        return found, {"divergences": int(np.sum(mcmc.get_extra_fields()["diverging"]))}


def summarised(draws: Draws, rows: int) -> dict[str, dict[str, float]]:
    """Every number of every variable but of those that have one for each row, and of those that never change."""
    kept = {name: np.asarray(values, float) for name, values in draws.items() if rows not in np.shape(values)[2:]}
    summary = arviz_stats.summary(arviz_base.from_dict({"posterior": kept}), kind="all", round_to="none")
    table = summary.astype(float)
    moving = table[table["sd"] > 0.0]
    return {str(name): {column: float(line[column]) for column in COLUMNS} for name, line in moving.iterrows()}


def answer(task: Mapping[str, Any]) -> dict[str, Any]:
    """Fit, summarise, and say what it cost."""
    began, spent_before = time.perf_counter(), processor_seconds()
    entry = CHOSEN[task["model"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = entry.make(task["rows"])
        draws, told = ours(entry, source) if task["side"] == "ours" else nuts(entry, source, task["draws"])
    seconds, spent = time.perf_counter() - began, processor_seconds() - spent_before
    return {**told, "seconds": seconds, "processor_seconds": spent, "summary": summarised(draws, task["rows"])}


if __name__ == "__main__":
    TASK = json.loads(Path(sys.argv[1]).read_text())
    Path(TASK["answer"]).write_text(json.dumps(answer(TASK)))
