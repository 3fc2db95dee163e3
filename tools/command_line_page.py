"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer

from coreset_mcmc.commands.cli import app

PROGRAM = "coreset-mcmc"
INTRODUCTION = """# The command line

Made from the code when this site is built, so it is what `--help` says. [From a table to a report](../command_line.md)
shows how the commands are used together.

| exit code | meaning |
|---|---|
| 0 | all went well |
| 2 | a mistake in what was asked for, or in the data; nothing was done |
| 3 | the run failed: a computation, or the disk; what was saved is kept |
| 4 | the verdict is worse than `--require` allows |
| 130 | interrupted; what there is is saved |
"""


def page() -> str:
    """Markdown with a heading for each command."""
    sections = [section(name, command) for name, command in commands(PROGRAM, typer.main.get_command(app))]
    return "\n".join([INTRODUCTION, *sections])


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command that does something, groups opened, in the order of the code.

    Typer may bring a click of its own, so nothing here asks for classes.
    """
    if hasattr(command, "commands"):
        for inner, child in command.commands.items():
            yield from commands(f"{name} {inner}", child)
    elif not command.hidden:
        yield name, command


def section(name: str, command: Any) -> str:
    """What it does, how it is called, its arguments and options, examples."""
    words, examples = split_help(command.help or "")
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    called = " ".join([name, *(shown_name(argument) for argument in arguments), "[OPTIONS]"])
    parts = [f"## {name}", words, f"```console\n{called}\n```"]
    if arguments:
        lines = [f"| `{shown_name(argument)}` | {cell(help_of(argument))} |" for argument in arguments]
        parts.append("\n".join(["| argument | |", "|---|---|", *lines]))
    if options:
        lines = [f"| {names(option)} | {cell(help_of(option))} | {default(option)} |" for option in options]
        parts.append("\n".join(["| option | | default |", "|---|---|---|", *lines]))
    if examples:
        parts.append("```console\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(parts) + "\n"


def split_help(text: str) -> tuple[str, list[str]]:
    """The words, and the commands after "Example:"."""
    lines = [line.strip() for line in text.splitlines()]
    examples = [line.removeprefix("Example: ") for line in lines if line.startswith("Example: ")]
    words = "\n".join(line for line in lines if not line.startswith("Example: "))
    return words.strip(), examples


def help_of(parameter: Any) -> str:
    """Its words."""
    return str(getattr(parameter, "help", None) or "")


def shown_name(argument: Any) -> str:
    """As the usage line has it."""
    return str(argument.metavar or argument.name).upper()


def names(option: Any) -> str:
    """All its spellings, and what it takes."""
    spellings = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return spellings if option.is_flag else f"{spellings} {kind(option)}".strip()


def kind(option: Any) -> str:
    """What it takes: choices, or a type; newer versions of Typer keep the annotation, older ones a type of click."""
    described = getattr(option, "type_descriptor", None)
    if described is None:
        choices = getattr(option.type, "choices", ())
        return " or ".join(choices) or str(option.type.name)
    annotation = described.annotation
    if get_origin(annotation) is Literal:
        return " or ".join(get_args(annotation))
    types = get_args(annotation) or (annotation,)
    return {"str": "text", "int": "integer", "Path": "path"}.get(types[0].__name__, types[0].__name__)


def default(option: Any) -> str:
    """As text; nothing where the words of the option say what happens without it."""
    value = option.default
    if value is None or callable(value) or option.is_flag or not str(value):
        return ""
    return f"`{value}`"


def cell(text: str) -> str:
    """For a table: one line, bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")
