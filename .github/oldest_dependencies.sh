#!/usr/bin/env bash
# Tests with every direct dependency at the lower bound that pyproject.toml allows, on the oldest Python.
# Needs uv. The folder of the environment is the first argument, what pytest shall run the others; default: the fast tier.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=${1:-.venv-oldest}
oldest_python=$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' pyproject.toml)
uv venv --clear --python "$oldest_python" "$environment"
uv pip install --python "$environment" --resolution lowest-direct -e ".[test]"
uv pip list --python "$environment"
"$environment/bin/python" -m pytest "${@:2}"
