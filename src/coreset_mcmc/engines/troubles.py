"""Messages for what goes wrong in the libraries of clusters."""

from __future__ import annotations

import importlib
import re

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.engines.parcels import versions


def require_extra(name: str, module: str) -> None:
    """Import a library of one of our extras, or say how to install it."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"cm.{name.capitalize()}",
            got=f"no package {module} ({error})",
            expected=f"the extra {name!r}",
            fix=f'Install it: pip install "coreset-mcmc[{name}]".',
        ) from error


def explained(error: Exception, worker: str) -> Exception:
    """What a framework raises instead of a worker's answer, in words that help; anything else as it is."""
    absent = re.search(r"No module named '([\w.]+)'|import of ([\w.]+) halted", str(error))
    if absent is None:
        return error
    module = absent[1] or absent[2]
    is_ours = module.split(".")[0] == "coreset_mcmc"
    ours = versions()["coreset-mcmc"]
    return InputError(
        f"worker {worker}",
        got=f"no module {module}",
        expected=f"coreset-mcmc {ours} on every worker" if is_ours else "the modules that the model is made of",
        fix=(
            f'Install it where workers run (pip install "coreset-mcmc=={ours}") and start them anew.'
            if is_ours
            else "Install that module where workers run, or define the model in the script or notebook itself."
        ),
    )
