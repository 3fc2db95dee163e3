"""Files of a run that were damaged or belong to another run are told in words, or made again."""

from __future__ import annotations

import json

import pytest

from coreset_mcmc.commands.config import Config, DataPart, ModelPart, SamplingPart
from coreset_mcmc.commands.folder import COMPLETE, new_folder
from coreset_mcmc.core.errors import InputError


@pytest.fixture
def folder(tmp_path):
    config = Config(DataPart(path="table.parquet"), model=ModelPart("y ~ x"), sampling=SamplingPart(seed=1))
    return new_folder(tmp_path / "run", config, overwrite=False)


def settings(seed):
    return {"status": COMPLETE, "settings": {"sampling": {"seed": seed}, "model": {"formula": "y ~ x"}}}


def test_the_summary_of_this_run_is_read(folder):
    folder.write_text(folder.summary_file, json.dumps(settings(seed=1)))
    assert folder.is_complete


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (json.dumps(settings(seed=2)), "that of another run"),
        ("{}", "something else"),
        ("[1, 2]", "something else"),
        ('{"status": 7}', "something else"),
        ("", "JSONDecodeError"),
    ],
)
def test_a_summary_that_cannot_be_is_refused(folder, text, got):
    folder.write_text(folder.summary_file, text)
    with pytest.raises(InputError, match=got) as told:
        folder.summary()
    assert "summary.json" in str(told.value)


def test_an_empty_configuration_is_named(folder):
    folder.config_file.write_text("")
    with pytest.raises(InputError, match=r"config\.toml.*without a table"):
        folder.config()
