"""Every script of the gallery runs on little data, prints a table and leaves a picture."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_the_gallery_is_there():
    assert len(EXAMPLES) >= 6


@pytest.mark.full
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, capsys, single_precision):
    """As a user runs it: JAX in its default precision."""
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
