#!/usr/bin/env bash
# Install the wheel of dist/ without extras into a new environment, and run the Python of the quick start there.
# The first argument is the Python to try; further ones go to pip, e.g. a file of constraints: -c oldest.txt
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
unset PYTHONPATH
"$folder/venv/bin/python" -m pip install -q "${@:2}" dist/coreset_mcmc-*.whl
sed -n '/^```python$/,/^```$/p' docs/quick_start.md | sed '/^```/d' >"$folder/quick_start.py"
cd "$folder"
size=$(stat -c %s "$OLDPWD"/dist/coreset_mcmc-*.whl)
echo "wheel: $size bytes"
[ "$size" -lt 1000000 ]
venv/bin/python --version
venv/bin/python quick_start.py
venv/bin/coreset-mcmc --version
