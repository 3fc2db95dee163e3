"""The engine of one process: the bits of a plain loop with any number of threads, and a clean end when things fail."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from functools import reduce

import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.watching import Stopped, stopped_by, watched_by
from coreset_mcmc.data.engine import Local, merged, on_leaf, on_part
from coreset_mcmc.data.layout import LEAVES_PER_PART, Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.data.task import PerRow, Program, SumOver, Task
from tests.helpers.streams import Stream
from tests.helpers.trees import leaves_equal

LEAF_ROWS = 256
SIZE = 2 * LEAVES_PER_PART * LEAF_ROWS + 3 * LEAF_ROWS + 17
LAYOUT = Layout(SIZE, LEAF_ROWS)
THREADS = pytest.mark.parametrize("threads", [1, 2, 3])


def weighted_sum(batch, weights, factor):
    return {"sum": factor * jnp.dot(batch, weights), "count": jnp.sum(weights)}


def scaled(batch, weights, factor):
    return factor * batch


TASKS = [Task(SumOver(weighted_sum), (np.float64(1.1),)), Task(PerRow(scaled), (np.float64(0.3),))]


@pytest.fixture(scope="module")
def values():
    """Of so many sizes that sums in another order have other bits."""
    generator = np.random.default_rng(0)
    return generator.normal(size=SIZE) * 10.0 ** generator.integers(-8, 8, SIZE)


@pytest.fixture(autouse=True)
def no_thread_stays():
    """Whatever a test does, afterwards there are the threads that were there before."""
    before = set(threading.enumerate())
    yield
    assert not [thread.name for thread in set(threading.enumerate()) - before]


def plain_loop(values):
    parts = []
    for part in range(LAYOUT.num_parts):
        leaves = [
            Leaf(LAYOUT, number, values[slice(*LAYOUT.rows_of_leaf(number))]) for number in LAYOUT.leaves_of_part(part)
        ]
        parts.append(reduce(lambda one, other: merged(TASKS, one, other), [on_leaf(TASKS, leaf) for leaf in leaves]))
    return parts


@THREADS
@pytest.mark.parametrize("kind", [ArraySource, Stream])
def test_the_bits_of_a_plain_loop(values, threads, kind):
    parts = range(LAYOUT.num_parts)
    found = list(Local(threads).each_part(kind(values), LAYOUT, TASKS, parts))
    assert len(found) == 3
    assert leaves_equal(found, plain_loop(values))
    assert leaves_equal(found, [on_part(kind(values), LAYOUT, TASKS, part) for part in parts])


def test_another_order_has_other_bits(values):
    """The broken twin: leaves put together last to first; without it the test above would show nothing."""
    leaves = [on_leaf(TASKS[:1], leaf) for leaf in ArraySource(values).leaves(LAYOUT, LAYOUT.leaves_of_part(0))]
    forwards, backwards = (
        reduce(lambda one, other: merged(TASKS[:1], one, other), order) for order in (leaves, leaves[::-1])
    )
    assert not leaves_equal(forwards, backwards)
    np.testing.assert_allclose(forwards[0]["sum"], backwards[0]["sum"], rtol=1e-10)


@THREADS
def test_some_parts_only(values, threads):
    found = list(Local(threads).each_part(ArraySource(values), LAYOUT, TASKS, [0, 2]))
    whole = plain_loop(values)
    assert leaves_equal(found, [whole[0], whole[2]])


@dataclass(frozen=True)
class FailsAt(Program):
    """Counts leaves, and cannot do one of them."""

    number: int

    def on_leaf(self, leaf, arguments):
        if leaf.number == self.number:
            raise ArithmeticError(f"leaf {self.number}")
        return 1

    def merge(self, one, other):
        return one + other


@THREADS
@pytest.mark.parametrize("number", [0, 1, 20, LAYOUT.num_leaves - 1])
def test_a_leaf_that_fails_ends_the_pass_with_its_error(values, threads, number):
    with pytest.raises(ArithmeticError, match=f"leaf {number}$"):
        list(Local(threads).each_part(Stream(values), LAYOUT, [Task(FailsAt(number))], range(LAYOUT.num_parts)))


class Unreadable(Stream):
    """Ends in the middle."""

    def read(self, start, stop):
        if stop > 20 * LEAF_ROWS:
            raise OSError("the file has gone")
        return super().read(start, stop)


@THREADS
def test_what_cannot_be_read_ends_the_pass_with_its_error(values, threads):
    parts = Local(threads).each_part(Unreadable(values), LAYOUT, TASKS, range(LAYOUT.num_parts))
    assert leaves_equal(next(parts), plain_loop(values)[0]), "what could be read is there"
    with pytest.raises(OSError, match="the file has gone"):
        next(parts)


@THREADS
def test_a_pass_ends_when_somebody_asks(values, threads):
    """After the first of three parts; the rest is not read but for a few leaves ahead."""
    source, event, seen = Stream(values), threading.Event(), []

    def watch(description, num_done, num_rows):
        seen.append((description, num_done, num_rows))
        if num_done:
            event.set()

    rows = Rows(source, Local(threads), LAYOUT)
    with watched_by(watch), stopped_by(event), pytest.raises(Stopped):
        list(rows.each_part(TASKS, "a look"))
    done = LEAVES_PER_PART * LEAF_ROWS
    assert seen == [("a look", 0, SIZE), ("a look", done, SIZE)]
    assert done <= source.num_read <= done + 3 * (threads + 1) * LEAF_ROWS < SIZE


@THREADS
def test_a_pass_that_nobody_finishes_ends(values, threads):
    parts = Local(threads).each_part(Stream(values), LAYOUT, TASKS, range(LAYOUT.num_parts))
    next(parts)
    parts.close()


class Watched(Stream):
    """Knows how many of its leaves are in memory."""

    def __init__(self, arrays):
        super().__init__(arrays)
        self.alive, self.most = weakref.WeakSet(), 0

    def leaves(self, layout, numbers):
        for leaf in super().leaves(layout, numbers):
            self.alive.add(leaf)
            self.most = max(self.most, len(self.alive))
            yield leaf


@THREADS
def test_few_leaves_are_in_memory(values, threads):
    """Those computed on, as many read ahead, and one in each hand; not all 35."""
    source = Watched(values)
    list(Local(threads).each_part(source, LAYOUT, TASKS, range(LAYOUT.num_parts)))
    assert 1 <= source.most <= 2 * threads + 4 < LAYOUT.num_leaves
