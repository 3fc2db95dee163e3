"""The rooms of the package and what each builds on, from the imports of the code: ``python -m tools.architecture``

A line that others imply is left out (the transitive reduction), and a room stands one layer below the lowest one that
it imports from. ``docs/images/architecture.svg`` is the result; a test draws it again.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "coreset_mcmc"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
ROOMS = re.findall(r"^\| `(\w+)/` \|", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
"""In the order of the map."""

COLUMN, ROW, BOX_WIDTH, BOX_HEIGHT = 86, 68, 112, 30
COLUMNS = {
    **{"core": 5.0, "data": 4.2, "datasets": 1.0, "diagnostics": 9.0, "engines": 2.4, "scans": 3.8, "models": 5.2},
    **{"driver": 7.8, "interop": 6.7, "tables": 3.8, "posterior": 5.2, "kernels": 5.2, "methods": 5.2, "extend": 5.8},
    **{"results": 4.4, "fitting": 3.8, "report": 5.6, "verdict": 3.8, "commands": 5.2, "estimators": 7.4},
}
"""Where a room stands from left to right, so that long lines run beside the boxes; a new one stands at the right."""
WIDTH = 10 * COLUMN
STYLE = """
  text { font: 14px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
  rect { fill: #eef2ff; stroke: #4051b5; rx: 6 }
  path { fill: none; stroke: #6b7280; stroke-width: 1.3 }
  .ground { fill: #ffffff; stroke: none }
"""


def imports() -> dict[str, set[str]]:
    """For each room, the rooms before it from which a module of it imports."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        if room in found:
            found[room] |= {other for other in rooms_of(path) if ROOMS.index(other) < ROOMS.index(room)}
    return found


def rooms_of(path: Path) -> set[str]:
    """Rooms named in the imports of a module."""
    modules = [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[1] for name in modules if name.startswith("coreset_mcmc.")} & set(ROOMS)


def reachable(graph: dict[str, set[str]], room: str) -> set[str]:
    """Everything that a room builds on, at whatever distance."""
    direct = graph[room]
    return direct.union(*(reachable(graph, other) for other in direct)) if direct else set()


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without lines that a path of others implies."""
    return {
        room: {one for one in direct if not any(one in reachable(graph, other) for other in direct - {one})}
        for room, direct in graph.items()
    }


def layers(graph: dict[str, set[str]]) -> list[list[str]]:
    """Rooms by the length of the longest path to the top."""
    depth: dict[str, int] = {}
    for room in ROOMS:
        depth[room] = 1 + max((depth[other] for other in graph[room]), default=-1)
    return [[room for room in ROOMS if depth[room] == number] for number in range(max(depth.values()) + 1)]


def drawing() -> str:
    """As SVG, the same text for the same code."""
    graph = imports()
    rows = layers(graph)
    centres = {
        room: (COLUMN * COLUMNS.get(room, 9.0), ROW * number + BOX_HEIGHT)
        for number, rooms in enumerate(rows)
        for room in rooms
    }
    height = ROW * (len(rows) - 1) + 2 * BOX_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Rooms of coreset_mcmc; a line leads from a room down to those that build on it</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
    ]
    for room, others in reduced(graph).items():
        lines += [_curve(centres[other], centres[room]) for other in sorted(others, key=ROOMS.index)]
    for room, (x, y) in centres.items():
        box = f'x="{x - BOX_WIDTH / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"'
        lines += [f"<rect {box}/>", f'<text x="{x:.1f}" y="{y + 5:.1f}">{room}</text>']
    return "\n".join([*lines, "</svg>"]) + "\n"


def _curve(top: tuple[float, float], bottom: tuple[float, float]) -> str:
    """Straight down to the last gap between layers, and over to the box there."""
    (x, y), (to_x, to_y) = (top[0], top[1] + BOX_HEIGHT / 2), (bottom[0], bottom[1] - BOX_HEIGHT / 2)
    begin = to_y - (ROW - BOX_HEIGHT)
    middle = (begin + to_y) / 2
    bend = f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path d="M{x:.1f} {y:.1f} V{begin:.1f} {bend}"/>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
