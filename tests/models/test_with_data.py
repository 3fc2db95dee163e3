"""Models that look at their rows before anything starts, where those are not in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.with_data import bound, check_columns
from tests.helpers.streamed import Streamed

SIZE = 2_000_000
DATA = {"y": np.arange(SIZE, dtype=np.float32)}


def seen_by(data):
    """The batch that the model was shown, and the model that came of it."""
    batches = []

    def bind(batch):
        batches.append(batch)
        return cm.Model(lambda position: 0.0, lambda position, rows: rows["y"], np.zeros(1), data=batch)

    made = bound(cm.Model(lambda position: 0.0, lambda position, rows: rows["y"], bind=bind), data)
    return batches[0], made


def test_rows_in_memory_are_shown_as_they_are():
    for data in (DATA, Rows.of_arrays(DATA)):
        batch, _ = seen_by(data)
        assert batch["y"] is DATA["y"]


def test_of_others_a_few_from_all_over_are_read():
    source = Streamed(DATA)
    batch, made = seen_by(source)
    assert made.data is source
    assert len(source.reads) == 8
    values = batch["y"]
    assert values.size == np.unique(values).size == 8 * 128
    assert (values[0], values[-1]) == (0, SIZE - 1)
    assert np.all(np.histogram(values, bins=8, range=(0, SIZE))[0] > 0)


def test_short_streams_are_shown_whole():
    batch, _ = seen_by(Rows(Streamed({"y": np.arange(5.0)})))
    np.testing.assert_array_equal(batch["y"], np.arange(5.0))


def test_functions_in_numpy_are_tried_on_rows_of_a_stream():
    calls = []

    def log_likelihood(position, rows):
        calls.append(len(rows["y"]))
        return -0.5 * (rows["y"] - position["mean"]) ** 2

    model = cm.Model.from_callable(lambda position: 0.0, log_likelihood, {"mean": np.zeros(())})
    bound(model, Streamed(DATA))
    assert calls
    assert max(calls) <= 8 * 128


def test_only_a_model_that_cannot_bind_itself_insists_on_the_columns_it_has():
    held = {"y": np.arange(3.0), "offset": np.zeros(3)}
    model = cm.Model(lambda position: 0.0, lambda position, rows: rows["y"] + rows["offset"], np.zeros(1), data=held)
    rows = Rows(Streamed(DATA))
    with pytest.raises(cm.InputError, match="got nothing for offset; expected the columns that the model was built"):
        check_columns(model, rows)
    check_columns(replace(model, bind=lambda batch: model), rows)
    check_columns(replace(model, data=rows.source, fixed_data="they are its own"), rows)
