"""With a Gaussian term or without: which is tried, with how many rows, and which is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.fitting import pipeline

NUM_PARAMETERS, NUM_ROWS = 64, 20_000
CALLED_FOR = 3_216
"""0.75 d (d + 3)"""


@dataclass(frozen=True)
class Asked:
    coreset_size: int | None
    kl_target: float = 0.05
    checkpoint: Any = None


class Read(NamedTuple):
    method: cm.LeastSquares
    model: Any = SimpleNamespace(differentiable=True, log_concave=False)
    positions: Any = {"x": np.zeros((4, NUM_PARAMETERS))}  # noqa: RUF012 - never changed
    rows: Any = SimpleNamespace(size=NUM_ROWS)


def made(size, estimate, *, has_term):
    found = SimpleNamespace(
        samples_coreset=True, is_interrupted=False, has_term=has_term, kl_estimate=estimate, settings={}
    )
    found.coreset = SimpleNamespace(size=size)
    found.with_settings = lambda more: found.settings.update(more) or found
    return found


def fitted(monkeypatch, asked, estimates):
    """The result, and the sizes and methods that were tried."""
    tried = []

    def fit_once(request, reading):
        has_term = reading.method.gaussian_term is not False
        tried.append((request.coreset_size, has_term))
        return made(request.coreset_size or 500, estimates[len(tried) - 1], has_term=has_term)

    monkeypatch.setattr(pipeline, "fit_once", fit_once)
    return pipeline.fit_best(Asked(asked), Read(cm.LeastSquares())), tried


def test_a_term_that_serves_is_kept(monkeypatch):
    result, tried = fitted(monkeypatch, None, [0.01])
    assert tried == [(None, True)]
    assert result.has_term


@pytest.mark.parametrize("useless", [2e5, math.inf, math.nan])
def test_where_it_is_useless_as_many_rows_as_called_for_are_tried_alone(monkeypatch, useless):
    result, tried = fitted(monkeypatch, None, [useless, 1e-6])
    assert tried == [(None, True), (CALLED_FOR, False)]
    assert not result.has_term
    assert "without 1e-06" in result.settings["gaussian_term"]


def test_a_number_of_rows_that_the_user_has_chosen_stays(monkeypatch):
    _, tried = fitted(monkeypatch, 2_000, [2e5, 1e-6])
    assert tried == [(2_000, True), (2_000, False)]
    _, tried = fitted(monkeypatch, 500, [2e5])
    assert tried == [(500, True)], "hopelessly few"


def test_where_it_is_merely_poor_so_few_rows_alone_are_not_tried(monkeypatch):
    _, tried = fitted(monkeypatch, None, [0.3])
    assert tried == [(None, True)]


def test_the_worse_of_the_two_is_not_kept(monkeypatch):
    result, _ = fitted(monkeypatch, None, [3.0, math.nan])
    assert result.has_term
