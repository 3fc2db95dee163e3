"""Random input for as long as one likes: readers of files, tables through the command line, models with known truth.

Readers (formulas, priors, configurations, checkpoints, runs) are fuzzed under coverage guidance where atheris is
installed. Tables and command lines come from hypothesis, which shrinks what fails. Random models are fitted and their
verdicts compared with the truth of a grid. Each takes a third of the minutes. The seed goes on from what the table
holds, so a second call tries other input.

    coreset-mcmc bench fuzz --minutes 60 --out docs/benchmarks
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from coreset_mcmc_benchmarks.fuzz.guided import at_random, guided
from coreset_mcmc_benchmarks.fuzz.models import tried_model
from coreset_mcmc_benchmarks.fuzz.readers import READERS
from coreset_mcmc_benchmarks.fuzz.tables import Case, cases, trouble_with
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

FIELDS = ("kind", "seed", "tries", "what", "trouble")
QUICK_READER_SECONDS, QUICK_TABLES = 0.5, 3


class Found(NamedTuple):
    """A batch of tries of one kind."""

    kind: str
    seed: int
    tries: int
    what: str
    trouble: str


def fuzz_table(folder: Path) -> RunsTable:
    """One row for each batch."""
    return RunsTable(folder / "fuzz.csv", FIELDS, ("kind", "seed"))


def fuzz_readers(seconds: float, seed: int, *, quick: bool) -> Iterator[Found]:
    """All readers share the time."""
    for name in READERS:
        share = seconds / len(READERS)
        made = at_random(name, share, seed) if quick else guided(name, max(int(share), 1))
        how = "guided" if find_spec("atheris") and not quick else "at random"
        yield Found(f"reader of a {name}", seed, made.tries, how, made.failure)


def fuzz_tables(count: int, seed: int) -> Found:
    """Some cases of hypothesis; the smallest that fails is told."""
    tries, found = [0], [""]

    @seeded(seed)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(cases())
    def check(case: Case) -> None:
        tries[0] += 1
        trouble = trouble_with(case)
        if trouble:
            found[0] = f"{trouble} from {case.arguments} {str(case.columns)[:150]}"
        assert not trouble

    try:
        check()
    except AssertionError:
        return Found("table", seed, tries[0], "command line", found[0])
    return Found("table", seed, tries[0], "command line", "")


def fuzz_models(seconds: float, seed: int) -> Iterator[Found]:
    """One after the other until the time is over; at least one."""
    began = time.monotonic()
    while True:
        made = tried_model(seed)
        yield Found("model", seed, 1, f"{made.words}: {made.verdict}", made.trouble)
        seed += 1
        if time.monotonic() - began > seconds:
            return


def batches(options_minutes: float, seed: int, *, quick: bool) -> Iterator[Found]:
    """Readers, tables and models for a third of the time each."""
    third = 20.0 * options_minutes
    yield from fuzz_readers(QUICK_READER_SECONDS * len(READERS) if quick else third, seed, quick=quick)
    began, count = time.monotonic(), 0
    while count == 0 or (not quick and time.monotonic() - began < third):
        yield fuzz_tables(QUICK_TABLES if quick else 25, seed + count)
        count += 1
    if not quick:
        yield from fuzz_models(third, seed)


def write_page(folder: Path) -> Path:
    """Tries by kind, and all trouble."""
    rows = fuzz_table(folder).rows()
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        some = [row for row in rows if row["kind"] == kind]
        lines.append(
            [kind, str(sum(int(row["tries"]) for row in some)), str(sum(bool(row["trouble"]) for row in some))]
        )
    said = {row["what"].rpartition(": ")[2] for row in rows if row["kind"] == "model"}
    models = [row for row in rows if row["kind"] == "model"]
    counts = [[word, str(sum(row["what"].endswith(f": {word}") for row in models))] for word in sorted(said)]
    text = [
        "# Random input on purpose", "",
        "`coreset-mcmc bench fuzz --minutes N` reads random files, carries out random command lines on random "
        "tables and fits random models whose posterior is known; [fuzz.csv](fuzz.csv) has every batch.", "",
        *table_lines(["input", "tries", "troubles"], lines), "",
        "Verdicts on random models:", "", *table_lines(["verdict", "models"], counts), "",
    ]  # fmt: skip
    bad = [[row["kind"], row["seed"], row["what"].replace("|", "/"), row["trouble"].replace("|", "/")] for row in rows
           if row["trouble"]]  # fmt: skip
    if bad:
        text += ["## Troubles", "", *table_lines(["input", "seed", "what", "trouble"], bad), ""]
    path = folder / "fuzz.md"
    path.write_text("\n".join(text))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Try, append, and write the page; 1 if there was trouble."""
    parser = quick_parser("fuzz", __doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, help="by default it goes on from the table")
    parser.add_argument("--out", type=Path, default=Path("fuzz"), help="folder of the table")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    table = fuzz_table(options.out)
    rows = table.rows()
    if not options.table and not (options.quick and rows):
        first = 1 + max((int(row["seed"]) for row in rows), default=-1) if options.seed is None else options.seed
        for found in batches(options.minutes, first, quick=options.quick):
            table.append(found._asdict())
            print(*found, sep=" | ", flush=True)
    write_page(options.out)
    return int(any(row["trouble"] for row in table.rows()))


if __name__ == "__main__":
    sys.exit(main())
