"""The result of a run in numbers: for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc.core.digits import beside
from coreset_mcmc.core.plain import number, plain, strict_json
from coreset_mcmc.core.words import explained
from coreset_mcmc.results.fit import Fit

COLOURS = {"good": "green", "use with care": "yellow", "do not use": "red"}
MAX_ROWS_SHOWN = 40


def parameters(fitted: Fit, interval: float) -> pd.DataFrame:
    """Mean, sd, interval, ESS and R-hat of each parameter, under names that do not depend on the probability."""
    table = fitted.summary(ci_prob=interval, ci_kind="eti", round_to="none")
    lower, upper = (name for name in table.columns if name.endswith(("_lb", "_ub")))
    kept = {"mean": "mean", "sd": "sd", lower: "lower", upper: "upper"}
    kept |= {"ess_bulk": "ess_bulk", "ess_tail": "ess_tail", "r_hat": "r_hat"}
    return table[[name for name in kept if name in table.columns]].rename(columns=kept)


def summary_of(
    fitted: Fit,
    *,
    status: str,
    interval: float,
    trust: Mapping[str, Any] | None,
    notes: Sequence[str],
    warned: Sequence[str],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """What ``summary.json`` holds: NaN is null, infinities are the words "inf" and "-inf"."""
    table = parameters(fitted, interval)
    coreset = None
    if fitted.has_coreset:
        coreset = {
            "size": fitted.coreset.size,
            "num_rows": fitted.coreset.num_rows,
            "effective_size": fitted.coreset.effective_size,
            "total_weight": float(fitted.coreset.weights.sum()),
        }
    content = {
        "status": status,
        "verdict": trust["verdict"] if trust else None,
        "law": fitted.law.value,
        "kl_estimate": fitted.kl_estimate,
        "interval": interval,
        "parameters": {str(name): row.to_dict() for name, row in table.iterrows()},
        "coreset": coreset,
        "trust": trust,
        "notes": list(notes),
        "warnings": list(warned),
        "cost": {**fitted.costs, "passes_over_all_rows": fitted.full_passes},
        "method": dict(fitted.settings),
        "settings": settings,
    }
    result: dict[str, Any] = plain(content)
    return result


def to_json(content: Mapping[str, Any]) -> str:
    """As text that any JSON reader takes."""
    return strict_json(content, indent=2, ensure_ascii=False) + "\n"


def print_parameters(console: Console, summary: Mapping[str, Any]) -> None:
    """The table of parameters; a long one is cut, the file has all of it."""
    probability = f"{100 * summary['interval']:g}%"
    table = Table(title="Posterior", title_justify="left")
    table.add_column("parameter", overflow="fold")
    for heading in ("mean", "sd", f"{probability} from", "to", "ESS", "R-hat"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = summary["parameters"]
    for name in list(rows)[:MAX_ROWS_SHOWN]:
        row = rows[name]
        cells = [digits(row.get(key), row.get("sd")) for key in ("mean", "sd", "lower", "upper")]
        table.add_row(escape(name), *cells, shown(row.get("ess_bulk"), ",.0f"), shown(row.get("r_hat"), ".3f"))
    console.print(table)
    if len(rows) > MAX_ROWS_SHOWN:
        console.print(f"... and {len(rows) - MAX_ROWS_SHOWN:,} more in summary.json.")
    print_words(console, "ESS", "R-hat")


def print_words(console: Console, *terms: str) -> None:
    """What a reader may not know about what was just printed, in small."""
    for line in explained(*terms):
        console.print(f"[dim]{escape(line)}[/dim]", highlight=False)


def shown(value: float | str | None, form: str) -> str:
    """A number of a summary in the given form; nothing for one that is not there."""
    return "" if value is None else format(number(value), form)


def digits(value: float | str | None, spread: float | str | None) -> str:
    """A number of a summary, as many digits of it as its spread gives a meaning to."""
    return "" if value is None else beside(number(value), number(spread))


def print_verdict(console: Console, trust: Mapping[str, Any] | None) -> None:
    """One line of judgement, its reason, and what it cannot see."""
    if trust is None:
        console.print("[bold]Not checked[/bold]: nobody has looked whether this result can be trusted.")
        return
    colour = COLOURS.get(trust["verdict"], "white")
    console.print(f"[bold {colour}]{trust['verdict'].capitalize()}.[/bold {colour}] {escape(trust['reason'])}")
    if trust["remedy"]:
        console.print(f"What to do: {escape(trust['remedy'])}")
    print_words(console, *(term for term in ("KL", "k-hat") if term in trust["reason"] or term == "KL"))
    console.print(f"[dim]{escape(trust['blind_spots'])}[/dim]")
