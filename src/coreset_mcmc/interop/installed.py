"""A clear word when an optional library is missing."""

from __future__ import annotations

import importlib

from coreset_mcmc.core.errors import InputError


def require_library(name: str, subject: str, extra: str | None = None) -> None:
    """Import a library, whose name is that of our extra unless another is given, or say how to install it."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            subject,
            got=f"no package {name} ({error})",
            expected=f"the extra {extra or name!r}",
            fix=f'Install it: pip install "coreset-mcmc[{extra or name}]".',
        ) from error
