"""Reads which packages import which, and what each module says that it does."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from docs.tables import cell, code, table

ROOT: Final = Path(__file__).parents[1]


class Module(NamedTuple):
    """One Python file of the product, and the first sentence of its docstring."""

    path: Path
    sentence: str

    @property
    def package(self) -> str:
        return self.path.parts[0]

    @property
    def folder(self) -> str:
        return str(self.path.parent)


def layers() -> tuple[tuple[str, ...], ...]:
    """Returns the layers of packages that `make lint` checks, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return tuple(tuple(name.strip() for name in row.split("|")) for row in contracts[0]["layers"])


def packages() -> tuple[str, ...]:
    return tuple(name for row in layers() for name in row)


def modules(package: str) -> list[Module]:
    files = sorted((ROOT / package).rglob("*.py"), key=lambda file: (file.parent, file.name))
    return [Module(file.relative_to(ROOT), _first_sentence(file)) for file in files if not _is_generated(file)]


@cache  # reads every file of the product, and the picture asks once for each arrow
def edges() -> frozenset[tuple[str, str]]:
    """Returns pairs of an importing and an imported package, except those that follow from two other pairs."""
    names = packages()
    direct = {(name, other) for name in names for other in _imported(name) if other in names and other != name}
    return frozenset(edge for edge in direct if not _is_implied(edge, direct, names))


def _is_implied(edge: tuple[str, str], direct: set[tuple[str, str]], names: Sequence[str]) -> bool:
    start, end = edge
    return any((start, name) in direct and _reaches(name, end, direct) for name in names if name not in edge)


def _reaches(start: str, end: str, direct: set[tuple[str, str]]) -> bool:
    return any(name == end or _reaches(name, end, direct) for first, name in direct if first == start)


def _imported(package: str) -> Iterator[str]:
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]
            elif isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)


def _first_sentence(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.removesuffix(".")


def _is_generated(file: Path) -> bool:
    return file.name.endswith("_pb2.py")


def tables() -> str:
    """Returns a table of the modules of each package, folder by folder."""
    return "\n\n".join(_package_table(package) for package in (*reversed(packages()), "deploy"))


def _package_table(package: str) -> str:
    listed = modules(package)
    said = next((module.sentence for module in listed if module.path == Path(package, "__init__.py")), "")
    rows = [(code(str(module.path)), cell(module.sentence)) for module in listed if _is_listed(module, package)]
    return f"### {package}\n\n{said}.\n\n{table(('module', 'does'), rows)}"


def _is_listed(module: Module, package: str) -> bool:
    return bool(module.sentence) and module.path != Path(package, "__init__.py")
