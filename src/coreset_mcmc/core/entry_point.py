"""The door to every computation that a user starts: double precision, and the user's own exceptions.

A user's function that compiled code calls (:mod:`coreset_mcmc.models.host`) runs on a thread of JAX, and what it raises
reaches the user as text inside an error of JAX. So the exception is kept under a name, the name travels in that text,
and :func:`entry_point` raises the exception that it finds there. Several threads may do so at once.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import jax

from coreset_mcmc.core.numpy_constants import keep_precisions_apart

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

MAX_KEPT = 100
"""Exceptions that nobody has asked for are forgotten beyond this number, the oldest first."""

_names = itertools.count()
_kept: dict[str, BaseException] = {}
_lock = threading.Lock()


class UsersError(Exception):
    """Stands for a user's exception while it passes through JAX."""

    def __init__(self, error: BaseException) -> None:
        name = f"user's exception number {next(_names)}"
        with _lock:
            _kept[name] = error
            for oldest in list(_kept)[:-MAX_KEPT]:
                del _kept[oldest]
        _do_not_log_what_is_raised_anyway()
        super().__init__(f"{type(error).__name__}: {error} ({name})")


def entry_point(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Run ``function`` in double precision; where a user's function raises, raise that instead of JAX's account."""

    @functools.wraps(function)
    def entered(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        keep_precisions_apart()
        with jax.enable_x64(True), _users_errors():
            return function(*args, **kwargs)

    return entered


@contextmanager
def _users_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        users = _users_error_in(error)
        if users is None:
            raise
        raise users from None


def _users_error_in(error: BaseException | None) -> BaseException | None:
    """The exception whose name is in the text of ``error`` or of what caused it."""
    while error is not None:
        for name in re.findall(r"user's exception number \d+", str(error)):
            with _lock:
                users = _kept.pop(name, None)
            if users is not None:
                return users
        error = error.__cause__ or error.__context__
    return None


def _do_not_log_what_is_raised_anyway() -> None:
    logging.getLogger(jax.pure_callback.__module__).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], UsersError))
