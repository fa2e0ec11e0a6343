"""Names are unique: classes, modules and terms of the glossary."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from docs import glossary, package_map

ROOT: Final = Path(__file__).parents[2]
TWICE: Final[Mapping[str, str]] = {}
"""Public class names that two modules may have, each with the reason."""


def test_no_two_modules_have_a_public_class_of_the_same_name() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path in _product_modules():
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path))
    assert {name: paths for name, paths in where.items() if len(paths) > 1 and name not in TWICE} == {}
    assert [name for name in TWICE if len(where[name]) < 2] == []


def test_no_two_modules_of_a_package_have_the_same_name() -> None:
    where: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in _product_modules():
        if path.stem not in ("__init__", "__main__"):
            where[path.parts[0], path.stem].append(str(path))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_no_folder_has_more_than_twenty_modules() -> None:
    sizes: dict[Path, int] = defaultdict(int)
    for path in _product_modules():
        sizes[path.parent] += 1
    assert {folder: size for folder, size in sizes.items() if size > 20} == {}


def test_every_term_of_the_glossary_is_explained_once() -> None:
    terms = [term for section in glossary.sections() for term, _ in section.terms]
    assert len(terms) > 40
    assert sorted(terms) == sorted(set(terms))


def _product_modules() -> list[Path]:
    return [module.path for package in package_map.packages() for module in package_map.modules(package)]
