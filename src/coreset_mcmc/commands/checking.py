"""What is looked at when a run has its draws: whether to trust them, and the data beside data that the model makes.

Both pass over the rows. A verdict is kept as soon as there is one, so that a run that is stopped after it goes on from
there; Ctrl-C leaves the rest out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from coreset_mcmc.commands.config import Config
from coreset_mcmc.commands.flags import verdict_by_flags
from coreset_mcmc.commands.folder import RunFolder
from coreset_mcmc.commands.reporting import save_predictive
from coreset_mcmc.core.memory import limited_to
from coreset_mcmc.core.plain import strict_json
from coreset_mcmc.report import predictive_check
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.verdict import Trust, trust


class Checked(NamedTuple):
    """The verdict, if there is one, and whether the run was interrupted by now."""

    trust: Trust | None
    is_interrupted: bool


def check(
    console: Console, config: Config, folder: RunFolder, fitted: Fit, response: str, *, is_in_memory: bool
) -> Checked:
    """An interrupted run is not kept waiting: no verdict, and no pass over rows that are not in memory."""
    judged = None
    try:
        if config.trust.check and not fitted.is_interrupted:
            judged = judged_run(console, config, folder, fitted)
        if is_in_memory or not fitted.is_interrupted:
            with limited_to(None):  # what it holds does not grow with the table
                made = predictive_check(fitted, name=response, seed=config.sampling.seed or 0)
            save_predictive(folder, made)
    except KeyboardInterrupt:
        return Checked(judged, True)
    return Checked(judged, fitted.is_interrupted)


def _digest(fitted: Fit) -> str:
    """What tells the draws that a verdict is about from all others."""
    sums = hashlib.sha256()
    for name, values in sorted(fitted.posterior.data_vars.items(), key=lambda item: str(item[0])):
        sums.update(f"{name} {values.shape}".encode() + np.ascontiguousarray(values.to_numpy()).tobytes())
    return sums.hexdigest()


def _kept(folder: RunFolder, asked: dict[str, Any]) -> Trust | None:
    """A verdict about these draws that was kept before; one that is damaged or of another run is as good as none."""
    try:
        kept = json.loads(folder.trust.read_text(encoding="utf-8"))
        return Trust.from_dict(kept["trust"]) if kept["asked"] == asked else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def judged_run(console: Console, config: Config, folder: RunFolder, fitted: Fit, *, seed: int | None = None) -> Trust:
    """The verdict, one that was kept if nothing else is asked for; by another ``seed`` if other rows are wanted."""
    asked = {**asdict(config.trust), "draws_judged": _digest(fitted), "seed": seed}
    kept = _kept(folder, asked)
    if kept is not None:
        return kept
    console.print(_announcement(config, fitted))
    judged = trust(
        fitted,
        draws=config.trust.draws,
        num_coresets=config.trust.coresets if fitted.samples_coreset else 1,
        sensitivity=config.trust.sensitivity and fitted.samples_coreset,
        random_seed=(config.sampling.seed or 0) + 1 if seed is None else seed,
        progressbar=True,
    )
    judged = verdict_by_flags(judged)
    folder.checkpoint.mkdir(exist_ok=True)
    folder.write_text(folder.trust, strict_json({"asked": asked, "trust": judged.to_dict()}))
    return judged


def _announcement(config: Config, fitted: Fit) -> str:
    """What the checks will do, and about how long that takes by what the fit took."""
    text = "Checking whether the result can be trusted"
    if not fitted.samples_coreset:
        return f"{text} ..."
    num_fits = config.trust.coresets - 1 + config.trust.sensitivity
    seconds = num_fits * sum(cost.seconds + cost.compile_seconds for cost in fitted.costs.values())
    fits = f" and {num_fits} more fit{'s' if num_fits > 1 else ''} with other rows" if num_fits else ""
    about = f", about {seconds:,.0f} s" if seconds >= 2.0 else ""
    return f"{text}: a pass over all rows{fits}{about} ..."
