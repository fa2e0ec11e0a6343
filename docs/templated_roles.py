"""Reads the roles in the chart's templates, which depend on values, as plain YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.chart.made import CHART

_TEMPLATES: Final = CHART / "templates"
_ONLY_LOGIC: Final = re.compile(r"^\s*\{\{.*\}\}\s*$\n?", re.MULTILINE)
_SAME_NAME: Final = re.compile(r'\{\{-? \$name := "([^"]+)"')
_VALUE: Final = re.compile(r"\{\{[^}]*\}\}")
_ROLE: Final = re.compile(r"^kind: (?:Cluster)?Role$", re.MULTILINE)
_NAME: Final = re.compile(r"^  name: (\S+)$", re.MULTILINE)


def templated_roles() -> Iterator[tuple[str, str]]:
    for file in sorted(_TEMPLATES.glob("*.yaml")):
        documents = _plain(file).split("\n---\n")
        for document in filter(_ROLE.search, documents):
            (name,) = _NAME.findall(document)
            comment = "" if document.startswith("#") else _comment(documents[0])
            yield name, f"{comment}{document}\n"


def _plain(file: Path) -> str:
    """Returns the file with … for each value."""
    text = file.read_text()
    found = _SAME_NAME.search(text)
    text = _ONLY_LOGIC.sub("", text)
    return _VALUE.sub("…", text.replace("{{ $name }}", found[1]) if found else text).removeprefix("---\n")


def _comment(document: str) -> str:
    """Returns the comment of the file, for a role without its own."""
    return "".join(line for line in document.splitlines(keepends=True) if line.startswith("#"))
