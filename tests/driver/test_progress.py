"""What a person sees of passes over rows: nothing of short ones, a bar or lines of long ones."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from coreset_mcmc.core.watching import tell, tell_bytes, watched_by
from coreset_mcmc.driver import log_lines, progress
from coreset_mcmc.driver.progress import ProgressBar, labelled, show_passes


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress.time, "monotonic", made)
    monkeypatch.setattr(log_lines, "_last_line", float("-inf"))
    return made


def pass_over_rows(clock, seconds, num_parts=10):
    tell("checking", 0, 1_000 * num_parts)
    for part in range(num_parts):
        clock.now += seconds / num_parts
        tell("checking", 1_000 * (part + 1), 1_000 * num_parts)


def lines(clock, seconds, **options):
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    with show_passes(True, console):
        pass_over_rows(clock, seconds, **options)
    return console.file.getvalue().splitlines()


def test_short_passes_are_not_worth_a_line(clock):
    assert lines(clock, 1.9) == []
    assert lines(clock, 9.9) == []


def test_long_ones_have_a_line_now_and_then_and_one_at_the_end(clock):
    assert lines(clock, 30.0, num_parts=30) == [
        "checking: 10,000 of 30,000 rows, 1,000/s, 20 s left",
        "checking: 20,000 of 30,000 rows, 1,000/s, 10 s left",
        "checking: 30,000 of 30,000 rows in 30 s",
    ]


def test_nothing_is_shown_unless_asked_for(clock):
    console = Console(file=io.StringIO(), force_terminal=False)
    with show_passes(False, console):
        pass_over_rows(clock, 100.0)
    assert console.file.getvalue() == ""


def test_those_around_are_told_if_nobody_inside_watches(clock):
    seen = []
    with watched_by(lambda *told: seen.append(told)), show_passes(False):
        tell("checking", 1, 2)
    assert seen == [("checking", 1, 2)]


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)


def test_on_a_terminal_there_is_a_bar_that_goes_away(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    console = terminal()
    with show_passes(True, console):
        tell("checking", 0, 3_000_000)
        tell("checking", 1_000_000, 3_000_000)
        tell("checking", 2_000_000, 3_000_000)
        time.sleep(0.25)
        tell("checking", 3_000_000, 3_000_000)
    shown = console.file.getvalue()
    assert "checking" in shown
    assert "2,000,000/3,000,000 rows" in shown


def test_the_bar_appears_before_any_row_is_done(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    console = terminal()
    with show_passes(True, console):
        tell("checking", 0, 3_000_000)
        time.sleep(0.5)
        tell("checking", 3_000_000, 3_000_000)
    assert "0/3,000,000 rows" in console.file.getvalue()


def test_an_error_takes_the_bar_away(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    console = terminal()

    def fail():
        with show_passes(True, console):
            tell("checking", 0, 3_000_000)
            tell("checking", 1_000_000, 3_000_000)
            raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        fail()
    before = console.file.getvalue()
    time.sleep(0.3)
    assert console.file.getvalue() == before


def test_a_run_tells_of_its_passes_in_its_own_bar(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    told = []
    monkeypatch.setattr(ProgressBar, "tell", lambda self, note: told.append(note))
    with ProgressBar("exact draws", 10, enabled=True), show_passes(True, terminal()):
        tell("deciding", 0, 4_000)
        tell("deciding", 1_000, 4_000)
    assert told[-1] == "deciding: 25% of the rows"


def log(monkeypatch):
    """A console that is no terminal, and the one that everybody uses."""
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    monkeypatch.setattr(progress.rich, "get_console", lambda: console)
    return console


def test_a_run_has_lines_in_a_log(clock, monkeypatch):
    """At most one in ten seconds, with the time left by the rate so far."""
    console = log(monkeypatch)
    with labelled("half the rows: "), ProgressBar("training", 100, enabled=True) as bar:
        for step in range(1, 51):
            clock.now += 0.5
            bar.update(step, "KL 0.1")
        bar.finish(50, "converged")
    assert console.file.getvalue().splitlines() == [
        "half the rows: training: 20 of 100 steps, 10 s, 40 s left (KL 0.1)",
        "half the rows: training: 40 of 100 steps, 20 s, 30 s left (KL 0.1)",
    ]


def test_steps_of_a_checkpoint_do_not_count_as_fast(clock, monkeypatch):
    console = log(monkeypatch)
    with ProgressBar("sampling", 1_000, enabled=True) as bar:
        bar.update(900, "")
        clock.now += 20.0
        bar.update(910, "found")
    assert console.file.getvalue() == "sampling: 910 of 1,000 steps, 20 s, 180 s left (found)\n"


def test_one_line_in_ten_seconds_whatever_it_is_about(clock, monkeypatch):
    console = log(monkeypatch)
    with show_passes(True, console):
        pass_over_rows(clock, 30.0, num_parts=30)
        with ProgressBar("training", 10, enabled=True) as bar:
            clock.now += 9.0
            bar.update(5, "")
            clock.now += 2.0
            bar.update(6, "")
    assert [line.partition(":")[0] for line in console.file.getvalue().splitlines()] == ["checking"] * 3 + ["training"]


def test_a_step_that_takes_long_is_not_silent(monkeypatch):
    """Nobody reports anything; a line comes all the same."""
    monkeypatch.setattr(log_lines, "BETWEEN_LINES", 0.05)
    console = log(monkeypatch)
    with ProgressBar("training", 10, enabled=True):
        time.sleep(0.4)
    assert "training: 0 of 10 steps" in console.file.getvalue()


def test_a_bar_that_stands_still_shows_that_time_goes_on(monkeypatch):
    console = terminal()
    monkeypatch.setattr(progress.rich, "get_console", lambda: console)
    with ProgressBar("training", 10, enabled=True) as bar:
        bar.update(1, "passing")
        time.sleep(1.3)
    assert "0 s" in console.file.getvalue()
    assert "1 s" in console.file.getvalue()


def test_bytes_are_told_in_their_own_unit(clock):
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    with show_passes(True, console):
        for done in range(0, 2_600_000_000, 100_000_000):
            clock.now += 1.0
            tell_bytes("reading big.csv", done, 2_500_000_000)
    assert console.file.getvalue().splitlines()[0] == "reading big.csv: 1,000 of 2,500 MB, 100/s, 15 s left"


def test_bars_of_terminals_are_not_for_notebooks():
    console = Console(file=io.StringIO(), force_jupyter=True)
    assert not log_lines.has_bars(console)


def test_a_notebook_has_one_bar_that_is_drawn_again(monkeypatch):
    """As a kernel of Jupyter would show it: one display, replaced, and complete at the end."""
    import sys
    import types

    shown = []

    class Handle:
        def update(self, content):
            shown[-1] = content

    def display(content, *, display_id):
        assert display_id
        shown.append(content)
        return Handle()

    fake = types.ModuleType("IPython.display")
    fake.HTML, fake.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    console = Console(file=io.StringIO(), force_terminal=True, force_jupyter=True)
    monkeypatch.setattr(progress.rich, "get_console", lambda: console)
    with ProgressBar("training", 10, enabled=True) as bar:
        bar.update(1, "KL <0.3")
        bar.finish(7, "converged")
    assert len(shown) == 1
    assert 'value="7" max="7"' in shown[0]
    assert "training: 7 of 7 steps" in shown[0]
    assert "converged" in shown[0]
    with ProgressBar("training", 10, enabled=False) as bar:
        bar.update(1, "")
    assert len(shown) == 1
