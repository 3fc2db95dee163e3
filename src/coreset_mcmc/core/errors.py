"""Errors a user can act on: what was got, what was expected, and the usual fix."""

from __future__ import annotations

from numbers import Integral
from typing import Any


class InputError(ValueError):
    """A mistake in the model, the data or an argument, found before any work starts."""

    def __init__(self, subject: str, *, got: object, expected: str, fix: str) -> None:
        self.subject = subject
        self.got = str(got)
        self.expected = expected
        self.fix = fix
        super().__init__(f"{subject}: got {got}; expected {expected}. {fix}")

    def __reduce__(self) -> Any:
        """Workers raise it too, and it has to come home."""
        return _input_error, (self.subject, self.got, self.expected, self.fix)


def _input_error(subject: str, got: str, expected: str, fix: str) -> InputError:
    return InputError(subject, got=got, expected=expected, fix=fix)


class RunError(RuntimeError):
    """The computation itself went wrong, at a known iteration."""


class CheckpointError(RuntimeError):
    """A checkpoint is unreadable, or belongs to another configuration."""


def require(condition: bool, subject: str, *, got: object, expected: str, fix: str) -> None:
    """Raise an :class:`InputError` unless ``condition`` holds."""
    if not condition:
        raise InputError(subject, got=got, expected=expected, fix=fix)


def require_positive(subject: str, value: object, *, fix: str = "Pass a number above zero.") -> None:
    """Check a plain Python number; traced values and arrays pass unchecked."""
    if isinstance(value, int | float):
        require(value > 0, subject, got=value, expected="a positive number", fix=fix)


def require_count(subject: str, value: object, *, at_least: int, fix: str) -> None:
    """Check a static count such as a number of chains."""
    is_count = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least
    require(is_count, subject, got=repr(value), expected=f"a whole number of at least {at_least}", fix=fix)
