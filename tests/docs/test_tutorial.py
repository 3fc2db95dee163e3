"""The tutorial is a notebook of the same code, and running it ends as its page says."""

from __future__ import annotations

import json
import re
import warnings
from functools import partial

import pytest

import coreset_mcmc as cm
from coreset_mcmc import datasets
from tools import outputs

EVERY = 60
"""One flight in so many: seconds instead of minutes."""


def test_the_notebook_is_that_of_the_page():
    """python -m tools.outputs docs/tutorial.md makes both."""
    assert outputs.NOTEBOOK.read_text(encoding="utf-8") == outputs.notebook_of(outputs.TUTORIAL)


def test_the_page_has_twelve_steps_and_each_a_picture():
    text = outputs.TUTORIAL.read_text(encoding="utf-8")
    steps = re.split(r"^## (?=\d+\. )", text, flags=re.MULTILINE)[1:]
    assert [int(step.split(".")[0]) for step in steps] == list(range(1, 13))
    for step in steps:
        pictures = outputs.PICTURE.findall(step)
        assert pictures or step.startswith("2. "), step[:40]
        for picture in pictures:
            assert 1_000 < (outputs.TUTORIAL.parent / picture).stat().st_size < 120_000, picture
        assert "```text" in step or step.startswith("2. "), f"no output: {step[:40]}"


ALONE = {"draws": 100, "num_coresets": 1, "sensitivity": False}
"""Checks without other fits, which have tests of their own."""


def with_fewer_draws(fit, *arguments, **options):
    return fit(*arguments, **{"progressbar": False, **options, "draws": 1_000, "tune": 200})


@pytest.mark.full
def test_the_notebook_runs(monkeypatch, single_precision):
    """Its cells in their order, on few flights; what is good on the page is good, and what is not is not."""
    import matplotlib

    matplotlib.use("agg")
    every_flight = datasets.flights_with_weather
    monkeypatch.setattr(datasets, "flights_with_weather", lambda: every_flight().iloc[::EVERY].reset_index(drop=True))
    monkeypatch.setattr(cm, "fit", partial(with_fewer_draws, cm.fit))
    monkeypatch.setattr(cm.Fit, "trust", lambda fit, **options: cm.trust(fit, **ALONE))
    cells = json.loads(outputs.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["trust"].verdict == "good"
    assert names["verdict"].verdict != "good"
    assert names["grown"].kl_estimate < 0.1
    from matplotlib import pyplot

    pyplot.close("all")
