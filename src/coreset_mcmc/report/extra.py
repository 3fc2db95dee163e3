"""Packages of the extra ``report``, imported when a report is made."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from coreset_mcmc.core.errors import InputError


def extra(package: str) -> Any:
    """The package, or an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            "report",
            got=f"no package {package}",
            expected="the extra 'report'",
            fix='Install it: pip install "coreset-mcmc[report]".',
        ) from error
