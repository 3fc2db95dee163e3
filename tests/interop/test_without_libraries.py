"""The core works with none of the libraries installed, and says what to install when one is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
for name in ("numpyro", "pymc", "pytensor", "bambi", "arviz", "jinja2", "matplotlib", "sklearn", "httpstan"):
    sys.modules[name] = None  # importing it now fails, as if it were not installed
import coreset_mcmc as cm
for function, extra in ((cm.from_numpyro, "numpyro"), (cm.from_pymc, "pymc"), (cm.from_bambi, "bambi")):
    try:
        function(lambda: None)
    except cm.InputError as error:
        assert "install" in str(error), error
        assert extra in str(error), error
    else:
        raise AssertionError(extra)
stan_data = {"N": 2, "y": [1, 2]}
uses = {"sklearn": lambda: __import__("coreset_mcmc.estimators"), "stan": lambda: cm.from_stan("\\n", stan_data)}
for extra, use in uses.items():
    try:
        use()
    except cm.InputError as error:
        assert f"coreset-mcmc[{extra}]" in str(error), error
    else:
        raise AssertionError(extra)
model = cm.Model(lambda p: -0.5 * p["m"] ** 2, lambda p, r: -0.5 * (r["y"] - p["m"]) ** 2, {"m": 0.0})
assert model.name == "model"
"""


@pytest.mark.full
def test_core_without_optional_libraries():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
