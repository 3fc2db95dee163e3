"""Goals are met or missed by what the table says."""

from __future__ import annotations

import pandas as pd
import pytest

from coreset_mcmc_benchmarks.speed.goals import RATIOS, goals, goals_section


def row(problem, contestant, **values):
    usual = {"import_seconds": 0.9, "seconds": 4.0, "seconds_to_effective": 5.0, "peak_megabytes": 600.0}
    return {"problem": problem, "contestant": contestant, **usual, **values}


def table(*rows):
    return pd.DataFrame(rows)


def verdicts(*rows):
    return {goal.words: goal.is_met for goal in goals(table(*rows))}


def test_all_goals_are_met_by_a_table_that_meets_them():
    rows = []
    for problem, least in RATIOS.items():
        rows += [row(problem, "ours"), row(problem, "nuts", seconds_to_effective=5.0 * least, peak_megabytes=600.0)]
    found = verdicts(*rows)
    assert len(found) == 4 + 2 * len(RATIOS)
    assert all(found.values())


@pytest.mark.parametrize(
    ("values", "missed"),
    [
        ({"import_seconds": 1.01}, "import coreset_mcmc"),
        ({"seconds": 4.6}, "cold start"),
        ({"seconds_to_effective": 5.1}, "over ours"),
        ({"peak_megabytes": 601.0}, "memory"),
    ],
)
def test_each_goal_is_missed_alone(values, missed):
    nuts = row("linear", "nuts", seconds_to_effective=100.0)
    found = verdicts(row("linear", "ours", **values), nuts)
    linear = {words: is_met for words, is_met in found.items() if words.startswith("linear")}
    assert [words for words, is_met in linear.items() if is_met is False] == [
        words for words in linear if missed in words
    ]
    assert sum(is_met is False for is_met in linear.values()) == 1


def test_a_goal_without_its_runs_is_neither_met_nor_missed():
    found = verdicts(row("linear", "ours"), row("logistic", "ours", seconds_to_effective=float("nan")))
    ratios = [is_met for words, is_met in found.items() if "over ours" in words]
    assert ratios == [None] * len(RATIOS)
    text = "\n".join(goals_section(table(row("linear", "ours"))))
    assert "not measured" in text
    assert "nan" not in text


def test_the_page_says_met_and_missed():
    rows = [row("linear", "ours", seconds=6.0), row("linear", "nuts", seconds_to_effective=150.0)]
    lines = goals_section(table(*rows))
    assert next(line for line in lines if "all of `cm.fit`" in line and "linear" in line).endswith("| **missed** |")
    assert next(line for line in lines if "over ours" in line and "linear" in line).endswith("| 30 | met |")
