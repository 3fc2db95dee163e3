"""The README's test command: formatting and lint, then types beside both tiers of tests.

Types take a minute of one core, tests all cores; beside each other neither waits.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIRST = [["ruff", "format", "--check"], ["ruff", "check"]]
BESIDE, LAST = ["mypy"], ["pytest", "--full"]


def main() -> int:
    for check in FIRST:
        if code := begun(check).wait():
            return code
    types = begun(BESIDE)
    tests = begun(LAST)
    codes = [types.wait(), tests.wait()]
    if codes[0]:
        print("types: mypy has found errors, see above the tests", flush=True)
    return next((code for code in codes if code), 0)


def begun(check: list[str]) -> subprocess.Popen[bytes]:
    print("+", *check, flush=True)
    return subprocess.Popen([sys.executable, "-m", *check], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
