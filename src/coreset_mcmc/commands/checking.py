"""What is looked at when a run has its draws: whether to trust them, and the data beside data that the model makes.

Both pass over the rows. A verdict is kept as soon as there is one, so that a run that is stopped after it goes on from
there; Ctrl-C leaves the rest out.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import NamedTuple

from rich.console import Console

from coreset_mcmc.commands.config import Config
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
            judged = _judged(console, config, folder, fitted)
        if is_in_memory or not fitted.is_interrupted:
            with limited_to(None):  # what it holds does not grow with the table
                made = predictive_check(fitted, name=response, seed=config.sampling.seed or 0)
            save_predictive(folder, made)
    except KeyboardInterrupt:
        return Checked(judged, True)
    return Checked(judged, fitted.is_interrupted)


def _judged(console: Console, config: Config, folder: RunFolder, fitted: Fit) -> Trust:
    asked = asdict(config.trust)
    if folder.trust.exists():
        kept = json.loads(folder.trust.read_text(encoding="utf-8"))
        if kept["asked"] == asked:
            return Trust.from_dict(kept["trust"])
    console.print("Checking whether the result can be trusted ...")
    judged = trust(
        fitted,
        draws=config.trust.draws,
        num_coresets=config.trust.coresets if fitted.samples_coreset else 1,
        sensitivity=config.trust.sensitivity and fitted.samples_coreset,
        random_seed=(config.sampling.seed or 0) + 1,
        progressbar=console.is_terminal,
    )
    folder.write_text(folder.trust, strict_json({"asked": asked, "trust": judged.to_dict()}))
    return judged
