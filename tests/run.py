"""The README's test command: formatting, lint, types and both tiers of tests, in that order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKS = [["ruff", "format", "--check"], ["ruff", "check"], ["mypy"], ["pytest", "--full"]]


def main() -> int:
    for check in CHECKS:
        print("+", *check, flush=True)
        code = subprocess.run([sys.executable, "-m", *check], cwd=ROOT, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
