"""Makes pictures as SVG of boxes, arrows and cards, readable on a light and a dark background. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

HEAD: Final = "head"
QUIET: Final = "quiet"
CODE: Final = "code"
RED: Final = "red"

OURS: Final = "ours"
THEIRS: Final = "box"
PLANNED: Final = "planned"
REFUSED: Final = "refused"
FRAME: Final = "frame"
TAKEN: Final = "taken"

_LIGHT: Final = """\
    .paper { fill: #ffffff; stroke: #d0d7de; }
    .box { fill: #f6f8fa; stroke: #8c959f; }
    .ours { fill: #ddf4ff; stroke: #0969da; stroke-width: 2; }
    .taken { fill: #54aeff; stroke: #0969da; }
    .planned { fill: none; stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 6 4; }
    .refused { fill: #ffebe9; stroke: #cf222e; stroke-width: 1.5; }
    .frame { fill: none; stroke: #8c959f; }
    .arrow { fill: none; stroke: #57606a; stroke-width: 1.8; }
    .no { fill: none; stroke: #cf222e; stroke-width: 1.8; }
    .tip { fill: #57606a; }
    .tip-no { fill: #cf222e; }
    text { fill: #1f2328; }
    .quiet { fill: #57606a; font-size: 13px; }
    .red { fill: #a40e26; font-size: 13px; }
    .head { font-weight: 600; }
    .code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace; font-size: 12.5px; }
"""
_DARK: Final = """\
      .paper { fill: #0d1117; stroke: #30363d; }
      .box { fill: #161b22; stroke: #6e7681; }
      .ours { fill: #0c2d6b; stroke: #58a6ff; }
      .taken { fill: #1f6feb; stroke: #58a6ff; }
      .planned { stroke: #6e7681; }
      .refused { fill: #3c1618; stroke: #f85149; }
      .frame { stroke: #6e7681; }
      .arrow { stroke: #9198a1; }
      .no { stroke: #f85149; }
      .tip { fill: #9198a1; }
      .tip-no { fill: #f85149; }
      text { fill: #e6edf3; }
      .quiet { fill: #b1bac4; }
      .red { fill: #ff9492; }
"""
_FONT: Final = "ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
NARROW: Final = 420
"""The width of a picture whose text a telephone shows in readable size; a wider one is scrolled there."""

LEFT: Final = 20
FULL: Final = NARROW - 2 * LEFT
"""Left edge and width of a box from one side of a narrow picture to the other."""

_MARGIN: Final = 16
_FIRST_LINE: Final = 25
_LINE: Final = 18


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture; `title` and `description` are for readers who cannot see it."""

    width: int
    height: int
    title: str
    description: str
    parts: tuple[str, ...]


def svg(picture: Picture) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width} {picture.height}"',
        f'     width="{picture.width}" height="{picture.height}" role="img" aria-labelledby="title description"',
        f'     font-family="{_FONT}" font-size="14">',
        "  <!-- made by docs/generate.py -->",
        f'  <title id="title">{escape(picture.title)}</title>',
        f'  <desc id="description">{escape(picture.description)}</desc>',
        f"  <style>\n{_LIGHT}    @media (prefers-color-scheme: dark) {{\n{_DARK}    }}\n  </style>",
        f"  <defs>\n{_tip('tip')}\n{_tip('tip-no')}\n  </defs>",
        _rect("paper", 0.5, 0.5, picture.width - 1, picture.height - 1, corner=10),
        *picture.parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def box(x: float, y: float, width: float, height: float, *lines: tuple[str, str], kind: str = THEIRS) -> str:
    """Draws a box with lines of text, from the top; each line has a style."""
    drawn = [_rect(kind, x, y, width, height, corner=8)]
    drawn += [
        text(x + _MARGIN, y + _FIRST_LINE + _LINE * number, content, style)
        for number, (style, content) in enumerate(lines)
    ]
    return "\n".join(drawn)


def ours(y: float, head: str, *lines: str) -> str:
    """Draws a part of Halfcard from one side to the other."""
    return box(LEFT, y, FULL, 74, (HEAD, head), *quiet(*lines), kind=OURS)


def quiet(*lines: str) -> tuple[tuple[str, str], ...]:
    return tuple((QUIET, line) for line in lines)


def text(x: float, y: float, content: str, style: str = "") -> str:
    chosen = f' class="{style}"' if style else ""
    return f'  <text{chosen} x="{x:g}" y="{y:g}">{escape(content, quote=False)}</text>'


def arrow(path: str, *, tip: bool = True) -> str:
    return _path("arrow", path, "tip" if tip else "")


def refusal(path: str, *, tip: bool = True) -> str:
    return _path("no", path, "tip-no" if tip else "")


def card(x: float, y: float, width: float, height: float, *taken: tuple[float, float]) -> str:
    """Draws a card and its used parts, each with its start and end as fractions of the width."""
    parts = [_rect(TAKEN, x + width * start, y, width * (end - start), height, corner=3) for start, end in taken]
    return "\n".join([_rect(THEIRS, x, y, width, height, corner=3), *parts])


def _rect(kind: str, x: float, y: float, width: float, height: float, *, corner: int) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'  <rect class="{kind}" x="{x:g}" y="{y:g}" {size} rx="{corner}"/>'


def _path(kind: str, path: str, tip: str) -> str:
    marker = f' marker-end="url(#{tip})"' if tip else ""
    return f'  <path class="{kind}" d="{path}"{marker}/>'


def _tip(name: str) -> str:
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"'
    return f'    <marker id="{name}" {size}><path class="{name}" d="M0 0 L10 5 L0 10 z"/></marker>'
