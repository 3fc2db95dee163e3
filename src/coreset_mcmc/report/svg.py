"""A matplotlib figure as SVG that can stand inside a page beside others.

Text stays text, so it can be read aloud, searched and printed sharply, and is never taken for mathematics: a column may
be called ``a_$x$_b``. Only ids that something refers to are kept, under a prefix of the figure's own; the colours of
the project become variables of the page's style, which dark mode changes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from coreset_mcmc.report.extra import extra
from coreset_mcmc.report.plots import ACCENT, FAINT, INK, PAPER

VARIABLES = {INK: "var(--ink)", ACCENT: "var(--accent)", FAINT: "var(--faint)", PAPER: "var(--paper)"}
SETTINGS = {
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "lines.markersize": 4.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DECIMALS = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_UNUSED = {"metadata", "style"}
"""Elements that a page does not need: the date of the file, and a style that would reach beyond the figure."""


@contextmanager
def settings_for_svg() -> Iterator[None]:
    """Figures must be made and written inside; matplotlib's settings are as before afterwards."""
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure whose size is in CSS pixels; it belongs to no window."""
    extra("matplotlib")
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra

    return Figure(figsize=(width / 72.0, height / 72.0))


def to_svg(figure: Any, *, name: str, label: str) -> str:
    """The figure as an ``<svg>`` element that says what it shows; ``name`` must be unique on the page."""
    file = io.StringIO()
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(file.getvalue())
    used = {reference for element in root.iter() for reference in _references(element)}
    _clean(root, name, used)
    width, height = root.get("viewBox", "").split()[2:]
    view_box = f"0 0 {float(width):g} {float(height):g}"
    root.attrib.clear()
    root.attrib.update({"viewBox": view_box, "role": "img", "aria-label": label})
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """A name without its namespace, which HTML does not need."""
    return name.rpartition("}")[2]


def _references(element: ElementTree.Element) -> Iterator[str]:
    for name, value in element.attrib.items():
        if _local(name) == "href":
            yield value.removeprefix("#")
        yield from _REFERENCE.findall(value)


def _clean(element: ElementTree.Element, prefix: str, used: set[str]) -> None:
    """Rename, shorten and drop, from this element downwards."""
    element.tag = _local(element.tag)
    attributes = {_local(name): value for name, value in element.attrib.items()}
    if attributes.get("id") not in used:
        attributes.pop("id", None)
    element.attrib.clear()
    element.attrib.update({name: _rewritten(name, value, prefix) for name, value in attributes.items()})
    for child in list(element):
        if _local(child.tag) in _UNUSED:
            element.remove(child)
        else:
            _clean(child, prefix, used)
    if element.tag != "text":
        element.text = element.text if (element.text or "").strip() else None
    element.tail = None


def _rewritten(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value.removeprefix('#')}"
    if name == "d":
        return " ".join(_DECIMALS.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value).split())
    value = _REFERENCE.sub(lambda match: f"url(#{prefix}-{match[1]})", value)
    if name == "style":
        for colour, variable in VARIABLES.items():
            value = value.replace(colour, variable)
    return value
