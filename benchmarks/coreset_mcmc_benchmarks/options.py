"""What the command lines of the benchmarks have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from coreset_mcmc.core.errors import require


def quick_parser(name: str, words: str | None) -> argparse.ArgumentParser:
    """The parser of ``coreset-mcmc bench NAME``, with the option that every benchmark has."""
    parser = argparse.ArgumentParser(
        prog=f"coreset-mcmc bench {name}", description=words, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="something small, to see that everything works")
    return parser


def check_names(subject: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that nobody knows."""
    unknown = [name for name in given if name not in known]
    require(not unknown, subject, got=", ".join(unknown), expected=f"one of {', '.join(known)}", fix="Check the names.")
