"""Programs that the command line keeps from one call to the next; it owns its process, so it may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.terminal import console, told_in_words
from coreset_mcmc.core.errors import InputError

app = typer.Typer(help="Compiled programs that are kept from one call to the next.", no_args_is_help=True)


@contextmanager
def kept_programs(console: Console, *, is_wanted: bool) -> Iterator[None]:
    """Within the block compiled programs are kept, unless that is not wanted or the folder does not allow it."""
    from coreset_mcmc.core.program_cache import FOLDER_VARIABLE, cache  # noqa: PLC0415 - keeps --help fast

    if not is_wanted or os.environ.get(FOLDER_VARIABLE, "").lower() == "off":
        yield
        return
    try:
        kept = cache()
    except InputError as error:
        console.print(f"[dim]{escape(f'Compiled programs are not kept. {error}')}[/dim]")
        yield
        return
    with kept:
        yield


@app.command("show")
def show() -> None:
    """Say where compiled programs are kept, and how much space they take.

    Example: coreset-mcmc cache show
    """
    with told_in_words():
        from coreset_mcmc.commands.budget import in_words  # noqa: PLC0415 - keeps --help fast
        from coreset_mcmc.core.program_cache import default_folder, files_of, num_bytes  # noqa: PLC0415

        folder = default_folder()
        count = len(files_of(folder))
        console.print(escape(f"{folder}: {count:,} files, {in_words(num_bytes(folder))}"), highlight=False)


@app.command("clear")
def clear() -> None:
    """Remove the compiled programs that are kept; the next call compiles anew.

    Example: coreset-mcmc cache clear
    """
    with told_in_words():
        from coreset_mcmc.commands.budget import in_words  # noqa: PLC0415 - keeps --help fast
        from coreset_mcmc.core.program_cache import clear as clear_folder  # noqa: PLC0415
        from coreset_mcmc.core.program_cache import default_folder  # noqa: PLC0415

        folder = default_folder()
        console.print(escape(f"{in_words(clear_folder(folder))} removed from {folder}"), highlight=False)
