"""All problems of the zoo by their names, in the order in which programs are shared best."""

from __future__ import annotations

from itertools import chain

from coreset_mcmc_benchmarks.zoo import groups, regressions, several_modes, steps, supports, tails
from coreset_mcmc_benchmarks.zoo.entry import Entry

ZOO: dict[str, Entry] = {
    entry.name: entry
    for entry in chain.from_iterable(
        room.entries() for room in (several_modes, steps, supports, tails, regressions, groups)
    )
}
