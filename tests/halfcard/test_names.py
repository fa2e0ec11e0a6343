"""Public names are spelled only in halfcard/names.py."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from halfcard import names

ROOT: Final = Path(__file__).parents[2]
NAMES: Final = ROOT / "halfcard" / "names.py"
PACKAGES: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
SOURCES: Final = sorted(
    source
    for package in PACKAGES
    for source in (ROOT / package).rglob("*.py")
    if source != NAMES and package != "devcluster"  # it writes manifests as people write them
)

COMMON_WORDS: Final = {"", "void", "none"}
"""Spelled in names.py and too ordinary to be looked for."""


def spelled(value: Any) -> Iterator[str | int]:
    """Every text and number of a constant, also when it is composed."""
    if isinstance(value, str | int):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from spelled(pair)
    elif isinstance(value, tuple | list | frozenset):
        for part in value:
            yield from spelled(part)


CONSTANTS: Final = {part for name, value in vars(names).items() if name.isupper() for part in spelled(value)}
TEXTS: Final = {part for part in CONSTANTS if isinstance(part, str)} - COMMON_WORDS
NUMBERS: Final = {part for part in CONSTANTS if isinstance(part, int)}
STRAY: Final = re.compile("|".join([*map(re.escape, TEXTS), *(rf"(?<!\d){number}(?!\d)" for number in NUMBERS)]))


def strays(source: str) -> list[str]:
    """Constants in code that hold one of the names: `line: constant`."""
    tree = ast.parse(source)
    prose = set(documentation(tree))
    return [
        f"{node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node not in prose and is_stray(node.value)
    ]


def documentation(tree: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand alone: docstrings, also those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def is_stray(value: object) -> bool:
    """Whole manifests are allowed: they are written as users write them."""
    if isinstance(value, str):
        return STRAY.search(value) is not None and not value.startswith("apiVersion:")
    return not isinstance(value, bool) and value in NUMBERS


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(ROOT)))
def test_no_name_is_spelled_outside_of_names(source: Path) -> None:
    assert strays(source.read_text(encoding="utf-8")) == []


STRAYS: Final = {
    "a resource": 'x = "tencent.com/vcuda-core"',
    "a domain within a text": 'fix = "add nvidia.com/gpu: 1"',
    "the text around a placeholder": 'x = f"halfcard.dev/{name}"',
    "a key": 'x["NVIDIA_VISIBLE_DEVICES"] = 1',
    "a path": 'route("/mutate/pods")',
    "a port": "port: int = 8443",
    "a port within an address": 'listen = "127.0.0.1:8443"',
    "a default of an argument": 'def f(prefix="tuya.com"): ...',
}


@pytest.mark.parametrize("source", STRAYS.values(), ids=STRAYS)
def test_a_name_outside_of_names_is_found(source: str) -> None:
    assert len(strays(source)) == 1


HARMLESS: Final = {
    "a docstring": '"""Reads tencent.com/vcuda-core."""',
    "a docstring of an attribute": 'x = 1\n"""Such as nvidia.com/gpu."""',
    "a comment": "x = 1  # halfcard.dev/",
    "put together from names": 'x = f"{names.OWN_PREFIX}{name}"',
    "the name of a dialect": 'name = "tencent"',
    "an ordinary word": 'x = "void"',
    "a truth": "x = True",
    "a number that only holds a port": 'x = "0123456789"',
    "a manifest": 'x = "apiVersion: v1\\nmetadata: {annotations: {halfcard.dev/x: 1}}"',
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_other_strings_are_not_reported(source: str) -> None:
    assert strays(source) == []


def test_public_names_are_searched() -> None:
    assert {"tencent.com", "nvidia.com/gpu", "halfcard.dev/", "NVIDIA_VISIBLE_DEVICES", "/mutate/pods"} <= TEXTS
    assert {8443, 3456, 8080} <= NUMBERS


def test_all_packages_are_searched() -> None:
    assert {"halfcard", "admission", "kube", "serving"} <= {source.relative_to(ROOT).parts[0] for source in SOURCES}
