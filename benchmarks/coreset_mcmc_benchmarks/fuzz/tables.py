"""Random tables, formulas, families, priors and options through the command line.

Whatever comes, the command ends within a minute by itself with one of its exit codes; a traceback or a hang is a
defect. Most inputs are nonsense and refused; some are strange and fitted.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies

from coreset_mcmc.commands.terminal import EXIT_INTERRUPTED, EXIT_RUN_ERROR, EXIT_USER_ERROR, EXIT_VERDICT
from coreset_mcmc.tables.families import FAMILIES
from coreset_mcmc_benchmarks.faults.runs import Ended, call

ROWS = 16
EXPECTED = (0, EXIT_USER_ERROR, EXIT_RUN_ERROR, EXIT_VERDICT, EXIT_INTERRUPTED)
LONGEST = 120
"""Seconds after which a command hangs."""

NUMBERS = strategies.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 1e-300, 1e12, -1e99, np.nan, np.inf, 3.0, 7.25])
TAME = strategies.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -0.25])
TEXTS = strategies.sampled_from(["a", "b", "", "ü", "a b", "nan", "1", "[x]", "b\n"])
NAMES = ["y", "x", "z", "a b", "lambda", "Ünicode", "x:z", "(1|x)", "sigma", "np"]


class Case(NamedTuple):
    """A table and what is asked of it."""

    columns: dict[str, list[Any]]
    arguments: list[str]
    suffix: str


def columns() -> strategies.SearchStrategy[list[Any]]:
    """Of one type each, mostly ordinary."""
    kinds = [
        strategies.lists(TAME, min_size=ROWS, max_size=ROWS),
        strategies.lists(strategies.sampled_from([0, 1]), min_size=ROWS, max_size=ROWS),
        strategies.lists(strategies.integers(-3, 2**40), min_size=ROWS, max_size=ROWS),
        strategies.lists(NUMBERS, min_size=ROWS, max_size=ROWS),
        strategies.lists(TEXTS, min_size=ROWS, max_size=ROWS),
        strategies.lists(strategies.booleans(), min_size=ROWS, max_size=ROWS),
        strategies.just([3.0] * ROWS),
        strategies.just(list(pd.date_range("2020", periods=ROWS))),
    ]
    return strategies.one_of(*kinds)


TERMS = [
    "x", "z", "y", "`a b`", "np.log(x)", "C(z)", "bs(x, df=4)", "x:z", "1", "0", "(1|z)", "scale(x)", "I(x**2)",
    "poly(x, 2)", "offset(x)", "nothing",
]  # fmt: skip
FILTERS = ["x > 0", "x == y", "z in [1, 2]", "x >", "__import__('os')", "not x", "x > 1e9", "`a b` != 'a'"]
PRIORS = [
    "x=Normal(0, 1)", "sigma=HalfCauchy(1)", "coefficients=Flat", "x=Normal(0, -1)", "y=What(1)", "x",
    "Intercept=Normal(1e400, 1)",
]  # fmt: skip


@strategies.composite
def formulas(draw: Any) -> str:
    """By a grammar, and sometimes by chance."""
    if draw(strategies.integers(0, 9)) == 0:
        return str(draw(strategies.text("yxz~+*:()`[]{}'\".0123np,-/ ", max_size=30)))
    terms = draw(strategies.lists(strategies.sampled_from(TERMS), min_size=1, max_size=3))
    response: str = draw(strategies.sampled_from(["y", "y", "y", "x", "np.log(y)", "y > 0", "`a b`"]))
    between: str = draw(strategies.sampled_from([" + ", " * ", " - ", " : "]))
    return f"{response} ~ {between.join(terms)}"


@strategies.composite
def cases(draw: Any) -> Case:
    """A table of a few columns and a command line."""
    names = ["y", "x", *draw(strategies.lists(strategies.sampled_from(NAMES[2:]), max_size=2, unique=True))]
    table = {name: draw(columns()) for name in names}
    family = draw(strategies.sampled_from([*FAMILIES, "magic"]))
    arguments = ["-f", draw(formulas()), "--family", family]
    if draw(strategies.integers(0, 3)) == 0:
        arguments += ["--prior", draw(strategies.sampled_from(PRIORS))]
    if draw(strategies.integers(0, 5)) == 0:
        arguments += ["--coreset-size", draw(strategies.sampled_from(["1", "8", "0", "-3", "auto", "100000", "x"]))]
    if draw(strategies.integers(0, 3)) == 0:
        arguments += ["--where", draw(strategies.sampled_from(FILTERS))]
    if draw(strategies.booleans()):
        arguments += ["--drop-missing"]
    return Case(table, arguments, draw(strategies.sampled_from([".csv", ".parquet"])))


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Whatever takes longer hangs."""

    def ring(number: int, frame: Any) -> None:
        raise TimeoutError(f"still at work after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def carried_out(case: Case) -> Ended:
    """The command on the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{case.suffix}"
        frame = pd.DataFrame(case.columns)
        frame.to_csv(path, index=False) if case.suffix == ".csv" else frame.to_parquet(path, index=False)
        options = ["--draws", "8", "--tune", "10", "--chains", "1", "--seed", "1", "--no-trust", "--no-report"]
        with alarm(LONGEST):
            return call("fit", path, *case.arguments, *options, "--out", Path(folder) / "run")


def trouble_with(case: Case) -> str:
    """What must not happen; empty if it did not."""
    ended = carried_out(case)
    if ended.trouble:
        return ended.trouble
    return "" if ended.code in EXPECTED and "Traceback" not in ended.text else f"exit {ended.code}: {ended.text[-200:]}"
