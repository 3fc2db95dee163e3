"""Whether the files of a table are those that a run began with."""

from __future__ import annotations

from collections.abc import Mapping

from coreset_mcmc.commands.config import Config, DataPart
from coreset_mcmc.core.errors import require

FIX = "Put the data back as they were, or begin a new run with 'coreset-mcmc fit'."


def described(size: int, stamp: str, digest: str) -> str:
    """A file in one line: its size, what changes when it is written, and a digest of the index at its end."""
    return " ".join(filter(None, [str(size), stamp, digest[:32]]))


def check_identity(config: Config, found: DataPart) -> None:
    """Refuse to go on with other data; ``found`` says what the table is now."""
    before, subject = config.data, f"data {', '.join(config.data.paths[:3])}"
    require(
        before.sha256 in ("", found.sha256),
        subject,
        got="other bytes than the run began with",
        expected="the same file",
        fix=FIX,
    )
    if before.files:
        changes = list(_changes(before.files, found.files))
        require(
            not changes,
            subject,
            got="; ".join(changes[:3]) + (f"; and {len(changes) - 3} more" if len(changes) > 3 else ""),
            expected="the files that the run began with",
            fix=FIX,
        )


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changes = [f"{name} has vanished" for name in before if name not in now]
    changes += [f"{name} was added" for name in now if name not in before]
    for name in before:
        if name in now and now[name] != before[name]:
            sizes = [text.split(" ")[0] for text in (before[name], now[name])]
            is_longer = sizes[0] != sizes[1]
            changes.append(
                f"{name} has changed: {sizes[0]} bytes then, {sizes[1]} now"
                if is_longer
                else f"{name} was written again"
            )
    return changes
