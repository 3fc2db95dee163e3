"""Every script of the gallery runs on little data, prints a table and leaves a picture."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from itertools import repeat
from pathlib import Path

import pytest

import coreset_mcmc as cm
from tests.docs.small_settings import with_small_settings

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_the_gallery_is_there():
    assert len(EXAMPLES) >= 6


TRAINED_SLOWLY = {"bambi_formula", "mixture", "numpyro_logistic", "pymc_hierarchical"}
"""Examples that show a model: how its coreset is trained is the same for all, and each compiles that anew."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "is_trained"),
    [
        *((path, path.stem not in TRAINED_SLOWLY) for path in EXAMPLES),
        *(pytest.param(path, True, marks=pytest.mark.slow) for path in EXAMPLES if path.stem in TRAINED_SLOWLY),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else ("trained" if value else "uniform weights"),
)
def test_example(path, is_trained, tmp_path, capsys, monkeypatch, single_precision):
    """As a user runs it: JAX in its default precision."""
    if not is_trained:
        with_small_settings(monkeypatch, repeat(cm.Uniform(cm.kernels.RandomWalk(0.1))))
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    picture = tmp_path / "picture.png"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        module.main(["--quick", "--output", str(picture)])
    printed = capsys.readouterr().out
    assert "mean" in printed
    assert "r_hat" in printed
    assert picture.stat().st_size > 5_000
