"""What workers keep, in bounded memory."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.engines.keeping import KeptRows, Parcels, PartName
from coreset_mcmc.engines.ledger import MOST_PARCELS, Ledger
from coreset_mcmc.engines.parcels import packed

LAYOUT = Layout(10_000, 256)


def leaf(number: int = 0) -> Leaf:
    return Leaf(LAYOUT, number, {"x": np.zeros(256)})


def test_rows_are_kept_as_long_as_there_is_room():
    kept, room = KeptRows(), 3 * 256 * 8
    for part in range(5):
        kept.keep(PartName("rows", 256, part), [leaf()], room)
    assert kept.size == room
    assert [kept.get(PartName("rows", 256, part)) is not None for part in range(5)] == [True] * 3 + [False] * 2


def test_rows_of_tables_are_kept():
    """Whole frames, text and all; what is kept does not change with the table it came from."""
    table = pd.DataFrame({"x": np.zeros(512), "g": ["text"] * 512})
    kept, name = KeptRows(), PartName("table", 256, 0)
    kept.keep(name, [Leaf(LAYOUT, 0, table.iloc[:256])], 10**6)
    assert kept.size > 256 * (8 + 4)
    table.loc[:, "x"] = 1.0
    (found,) = kept.get(name)
    assert found.batch["x"].sum() == 0.0
    kept.keep(PartName("table", 256, 1), [Leaf(LAYOUT, 1, table.iloc[256:])], kept.size + 1)
    assert kept.get(PartName("table", 256, 1)) is None


def test_rows_of_other_sources_make_room():
    kept, room = KeptRows(), 3 * 256 * 8
    for part in range(3):
        kept.keep(PartName("old", 256, part), [leaf()], room)
    kept.keep(PartName("new", 256, 0), [leaf()], room)
    assert kept.get(PartName("new", 256, 0)) is not None
    assert kept.get(PartName("old", 256, 0)) is None
    assert kept.get(PartName("old", 256, 2)) is not None
    assert kept.size == room


def test_kept_rows_hold_on_to_nothing_else():
    whole = np.zeros((10_000, 3))
    kept, name = KeptRows(), PartName("rows", 256, 0)
    kept.keep(name, [Leaf(LAYOUT, 0, {"x": whole[:256]})], 10**6)
    leaves = kept.get(name)
    assert leaves is not None
    assert leaves[0].batch["x"].base is None


def test_parcels_that_were_used_last_stay():
    parcels = Parcels(most=2)
    first = parcels.keep("a", [1])
    parcels.keep("b", [2])
    assert parcels.keep("a", [3]) is first
    parcels.get("a")
    parcels.keep("c", [4])
    assert parcels.get("a") is first
    assert parcels.get("b") is None


def test_a_ledger_remembers_less_than_workers_keep():
    ledger = Ledger()
    ledger.note_parcels("worker", [str(number) for number in range(MOST_PARCELS + 1)])
    assert not ledger.has_parcel("worker", "0")
    assert ledger.has_parcel("worker", "1")
    ledger.note_home("rows", 256, 3, "worker")
    ledger.forget("worker")
    assert not ledger.has_parcel("worker", "1")
    assert ledger.home_of("rows", 256, 3) is None


def test_what_cannot_be_pickled_is_refused():
    with pytest.raises(InputError, match="program: got what cannot be pickled"):
        packed((number for number in range(3)), "program")


def test_errors_for_users_survive_the_way_home():
    error = pickle.loads(pickle.dumps(InputError("y", got=1, expected="2", fix="Fix it.")))
    assert str(error) == "y: got 1; expected 2. Fix it."
    assert error.fix == "Fix it."
