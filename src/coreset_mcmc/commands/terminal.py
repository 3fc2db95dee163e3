"""What all commands share: where they write, how errors are told, and exit codes.

0 all went well; 2 a mistake in what was asked for or in the data, found before any work; 3 the run failed (a
computation, or the disk); 4 the verdict is worse than ``--require`` allows; 130 interrupted, what there is is saved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.flags import by_flags, error_by_flags
from coreset_mcmc.core.errors import CheckpointError, InputError, RunError
from coreset_mcmc.driver.progress import PATIENCE

EXIT_USER_ERROR = 2
EXIT_RUN_ERROR = 3
EXIT_VERDICT = 4
EXIT_INTERRUPTED = 130

console = Console()
errors = Console(stderr=True)


@contextmanager
def announced(shown_on: Console, words: str) -> Iterator[None]:
    """Say what is going on, if it goes on for longer than a moment and nothing else shows how far it is."""
    timer = threading.Timer(PATIENCE, shown_on.print, (escape(words),), {"highlight": False})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def told_in_words() -> Iterator[None]:
    """Errors as one message and an exit code, without a traceback."""
    try:
        yield
    except (InputError, CheckpointError) as error:
        words = error_by_flags(error) if isinstance(error, InputError) else error
        errors.print(f"[red]Error:[/red] {escape(str(words))}")
        raise typer.Exit(EXIT_USER_ERROR) from error
    except RunError as error:
        errors.print(f"[red]The run failed.[/red] {escape(by_flags(str(error)))}")
        raise typer.Exit(EXIT_RUN_ERROR) from error
    except MemoryError as error:
        errors.print("[red]The run failed.[/red] There is not enough memory for these rows and columns.")
        raise typer.Exit(EXIT_RUN_ERROR) from error
    except KeyboardInterrupt as error:
        errors.print("Interrupted.")
        raise typer.Exit(EXIT_INTERRUPTED) from error
