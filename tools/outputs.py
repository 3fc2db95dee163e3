"""Run the Python of a page and write what it prints and draws into the page: ``python -m tools.outputs PAGE...``

A block that prints is followed by a block of text, which is replaced. A figure goes to the first picture that the page
names after the block. The tutorial also becomes a notebook, of the same blocks, without outputs.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
NOTEBOOK = TUTORIAL.with_suffix(".ipynb")
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)
TEXT = re.compile(r"^```text\n.*?^```\n\n?", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+)\)\n\n?", re.MULTILINE)
WIDTH = 110
DOTS = 110


def with_outputs(page: Path) -> str:
    """The text of the page with fresh outputs; pictures are saved on the way."""
    import matplotlib  # noqa: PLC0415 - of the extra "docs"
    import pandas  # noqa: PLC0415
    import rich  # noqa: PLC0415

    matplotlib.use("agg")
    pandas.set_option("display.width", WIDTH, "display.max_columns", 20)
    rich.get_console().quiet = True
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    parts, end = [], 0
    for found in PYTHON.finditer(text):
        printed = output_of(found.group(1), names, page)
        save_figure(page, PICTURE.search(text, found.end()))
        block = f"```python\n{found.group(1)}```\n"
        parts += [text[end : found.start()], block + (f"\n```text\n{printed}\n```\n" if printed else "")]
        end = found.end()
    return "".join([*parts, text[end:]])


def output_of(code: str, names: dict[str, Any], page: Path) -> str:
    """What the code prints, warnings among it; files that it writes are thrown away."""
    captured = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(captured),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("default", UserWarning)
        exec(compile(code, str(page), "exec"), names)
    warned = [textwrap.fill(f"Warning: {one.message}", WIDTH) for one in caught if one.category is UserWarning]
    lines = [line.rstrip() for line in "\n".join([*warned, captured.getvalue()]).splitlines()]
    return "\n".join(lines).strip("\n")


def save_figure(page: Path, named: re.Match[str] | None) -> None:
    """The open figure, if there is one, under the name of the next picture."""
    from matplotlib import pyplot  # noqa: PLC0415

    if not pyplot.get_fignums():
        return
    assert named is not None, "a figure, and no picture on the page after it"
    path = page.parent / named.group(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    pyplot.gcf().savefig(path, dpi=DOTS, bbox_inches="tight", metadata={"Software": None})
    pyplot.close("all")


def notebook_of(page: Path) -> str:
    """The same page as a notebook: code to run, and the words between."""
    import nbformat  # noqa: PLC0415 - of the extra "docs"

    text = page.read_text(encoding="utf-8")
    cells, end = [], 0

    def add_words(words: str) -> None:
        words = PICTURE.sub("", TEXT.sub("", words)).strip()
        if words:
            cells.append(nbformat.v4.new_markdown_cell(words, id=f"cell-{len(cells)}"))

    for found in PYTHON.finditer(text):
        add_words(text[end : found.start()])
        cells.append(nbformat.v4.new_code_cell(found.group(1).strip("\n"), id=f"cell-{len(cells)}"))
        end = found.end()
    add_words(text[end:])
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=kernel))) + "\n"


def main(pages: list[str]) -> None:
    """Write the pages anew, and the notebook."""
    for name in pages:
        page = Path(name).resolve()
        page.write_text(with_outputs(page), encoding="utf-8")
        print("written", page.relative_to(ROOT))
    NOTEBOOK.write_text(notebook_of(TUTORIAL), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or [str(TUTORIAL), str(ROOT / "docs" / "quick_start.md")])
