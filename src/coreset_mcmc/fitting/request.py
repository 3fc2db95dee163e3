"""What a user asks of ``fit``, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.selection import Selection
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.run import Callback
from coreset_mcmc.fitting.final_check import MOST_DRAWS
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.models.model import Model

RECIPE = ("draws", "tune", "chains", "method", "kernel", "selection", "initvals")
"""Options that a fit remembers besides the number of rows, so that another one like it can be made."""


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`coreset_mcmc.fit`, with the data and the seed that are going to be used."""

    model: Model
    data: Any
    random_seed: int
    coreset_size: int | Literal["auto"] | None = None
    kl_target: float = 0.05
    draws: int = 1000
    tune: int = 500
    chains: int = 4
    progressbar: bool = True
    method: Method | None = None
    kernel: Kernel | None = None
    selection: Selection | None = None
    initvals: Position | None = None
    dims: Mapping[str, Any] | None = None
    coords: Mapping[str, Any] | None = None
    var_names: Sequence[str] | str | None = None
    checkpoint: Checkpoint | Path | str | None = None
    callbacks: Sequence[Callback] = ()
    engine: Engine | None = None
    most_checked: int = MOST_DRAWS
    """Draws in the final check, at most."""

    def check(self) -> None:
        """Refuse what cannot be meant."""
        require(
            isinstance(self.model, Model),
            "model",
            got=type(self.model).__name__,
            expected="a Model",
            fix="Build a cm.Model.",
        )
        require_count("draws", self.draws, at_least=1, fix="Pass how many draws to keep from each chain.")
        require_count("tune", self.tune, at_least=0, fix="Leave it out for the default.")
        require_count("chains", self.chains, at_least=1, fix="Four chains let R-hat tell whether they agree.")
        require_positive("kl_target", self.kl_target)
        require(
            self.data is not None,
            "data",
            got="None, and the model holds none",
            expected="arrays with a common leading row axis",
            fix="Pass them: cm.fit(model, data).",
        )
        require(
            self.method is None or isinstance(self.method, Method),
            "method",
            got=_named(self.method),
            expected="a method such as cm.LeastSquares()",
            fix="Pass an object such as cm.NUTS(), or of a subclass of cm.extend.Method; docs/methods.md lists them.",
        )
        require(
            self.selection is None or isinstance(self.selection, Selection),
            "selection",
            got=_named(self.selection),
            expected="a rule that picks rows: cm.selection.Uniform(), Stratified(...) or Given(...)",
            fix="cm.Uniform is a method, which goes into method=; for uniform rows pass cm.selection.Uniform()."
            if isinstance(self.selection, Method)
            else "Pass an object of one of these classes, not the class itself.",
        )

    @property
    def names_rows(self) -> bool:
        """Whether the rows of the coreset are the user's to name."""
        return self.selection is not None and self.selection.names_rows

    def recipe(self, coreset_size: int | None) -> dict[str, Any]:
        """Options that make another fit like this one, with another seed."""
        return {name: vars(self)[name] for name in RECIPE} | {"coreset_size": coreset_size}


def _named(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of class {type(value).__name__}"
