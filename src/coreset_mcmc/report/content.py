"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from coreset_mcmc.report.predictive_check import PredictiveCheck
from coreset_mcmc.results.effects import Effect
from coreset_mcmc.results.fit import Fit


@dataclass(frozen=True)
class Content:
    """Everything that a report shows."""

    title: str
    fit: Fit
    trust: Any | None
    """The outcome of the checks (verdict, reason, remedy, findings, blind_spots and their numbers); None if there were
    none, and then the report says so.
    """
    subtitle: str = ""
    rows: pd.DataFrame | None = None
    """The rows of the coreset with the user's own columns and with ``row``, its number in the data, and ``weight``."""
    predictive: PredictiveCheck | None = None
    effects: Sequence[Effect] = ()
    """Average effects of columns, each with a picture."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """Warnings and remarks in words."""
    is_partial: bool = False
    """Whether the run was interrupted."""
