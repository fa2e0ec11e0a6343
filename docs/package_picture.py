"""Draws the packages: a row for each layer that `make lint` checks, and an arrow for each import between packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from docs import package_map
from docs.drawing import CODE, HEAD, OURS, QUIET, Picture, arrow, box, text
from docs.programs import command_names

_WIDTH: Final = 960
_LEFT: Final = 24
_RIGHT: Final = _WIDTH - _LEFT
_GAP: Final = 10
_BETWEEN_ROWS: Final = 64
_LINE: Final = 18
_CHARS_PER_PIXEL: Final = 0.12
_CAPTION: Final = "An arrow is an import. Imports that follow from two others are not shown."
_CAPTIONS: Final[Mapping[str, str]] = {
    "devcluster": "starts a cluster for `halfcard dev` and for tests; not in the wheel or the image",
    "cli": ", ".join(command_names()),
    "simulation": "replays a workload",
    "admission": "the webhook",
    "certs": "CA and certificates",
    "deviceplugin": "the node agent",
    "extender": "chooses the cards",
    "quota": "settles ledgers",
    "kube": "talks to the API server, or reads manifests",
    "serving": "listens: TLS, health, log",
    "settings": "reads the settings file",
    "halfcard": "the domain: plain data and pure functions, no I/O",
}


class _Box(NamedTuple):
    package: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[tuple[str, str], ...]

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def packages() -> Picture:
    boxes = {drawn.package: drawn for drawn in _boxes()}
    height = max(drawn.y + drawn.height for drawn in boxes.values()) + 32
    arrows = [_arrow(boxes[start], boxes[end], boxes) for start, end in sorted(package_map.edges())]
    drawn = [box(each.x, each.y, each.width, each.height, *each.lines, kind=OURS) for each in boxes.values()]
    rows = "; ".join(", ".join(row) for row in package_map.layers())
    return Picture(
        _WIDTH,
        int(height),
        "The packages of Halfcard, and which of them import which",
        f"From the top: {rows}. Imports point down only; packages of one row never import each other.",
        (*arrows, *drawn, text(_LEFT, height - 10, _CAPTION, QUIET)),
    )


def _boxes() -> Iterator[_Box]:
    columns: dict[str, tuple[float, float]] = {}
    for row in reversed(package_map.layers()):
        columns |= _columns(row, columns)
    y = float(_LEFT)
    for row in package_map.layers():
        lines = {name: _lines(name, columns[name][1]) for name in row}
        height = 20 + _LINE * max(map(len, lines.values()))
        yield from (_Box(name, columns[name][0], y, columns[name][1], height, lines[name]) for name in row)
        y += height + _BETWEEN_ROWS


def _columns(row: tuple[str, ...], below: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Returns left edge and width of each package; a single package in a row is placed above what it imports."""
    imported = [end for start, end in sorted(package_map.edges()) if start == row[0] and end in below]
    if len(row) == 1 and len(imported) == 1:
        return {row[0]: below[imported[0]]} if imported[0] != package_map.layers()[-1][0] else {row[0]: _whole()}
    width = (_RIGHT - _LEFT - _GAP * (len(row) - 1)) / len(row)
    return {name: (_LEFT + number * (width + _GAP), width) for number, name in enumerate(row)}


def _whole() -> tuple[float, float]:
    return _LEFT, _RIGHT - _LEFT


def _lines(package: str, width: float) -> tuple[tuple[str, str], ...]:
    modules = package_map.modules(package)
    folders = sorted({module.folder.partition("/")[2] for module in modules} - {""})
    wrapped = _wrapped(folders, int(width * _CHARS_PER_PIXEL))
    return (
        (HEAD, package),
        (QUIET, _CAPTIONS[package]),
        (QUIET, f"{len(modules)} modules"),
        *((CODE, line) for line in wrapped),
    )


def _wrapped(names: list[str], chars: int) -> list[str]:
    lines = [""]
    for name in (each for each in names if "/" not in each):
        joined = f"{lines[-1]} {name}/".strip()
        lines = [*lines[:-1], joined] if len(joined) <= chars else [*lines, f"{name}/"]
    return [line for line in lines if line]


def _arrow(start: _Box, end: _Box, boxes: Mapping[str, _Box]) -> str:
    """Draws a line from the bottom of the importing package to the top of the imported one; ends are spread evenly."""
    sources = sorted(
        (boxes[name] for name, other in package_map.edges() if other == end.package), key=lambda each: each.x
    )
    share = (sources.index(start) + 1) / (len(sources) + 1)
    to_x = end.x + end.width * share
    from_x = min(max(to_x, start.x + 12), start.x + start.width - 12)
    return arrow(f"M{from_x:.0f} {start.y + start.height:g} L{to_x:.0f} {end.y - 2:g}")
