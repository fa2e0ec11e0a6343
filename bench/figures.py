"""Measured figures next to their targets: a table for people, JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

WIDTH: Final = 100
_NAME, _VALUE, _TARGET = 54, 18, 16


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; `at_most` is the target where there is one."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    digits: int = 2

    @property
    def verdict(self) -> str:
        if self.at_most is None:
            return ""
        return "met" if self.value <= self.at_most else "MISSED"

    def line(self) -> str:
        value = f"{self.value:,.{self.digits}f} {self.unit}"
        target = "" if self.at_most is None else f"<= {self.at_most:g} {self.unit}"
        return f"  {self.name:{_NAME}}{value:>{_VALUE}}{target:>{_TARGET}}  {self.verdict}".rstrip()

    def as_json(self) -> dict[str, Any]:
        wanted = {} if self.at_most is None else {"at_most": self.at_most, "met": self.verdict == "met"}
        return {"name": self.name, "value": self.value, "unit": self.unit} | wanted


@dataclass(frozen=True, slots=True)
class Part:
    """One measurement: how it was made, its numbers, and what to compare them with."""

    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = ()

    def lines(self) -> Iterable[str]:
        yield self.title
        yield from (figure.line() for figure in self.figures)
        yield from (f"  {note}" for note in self.notes)


def table(parts: Iterable[Part]) -> str:
    return "\n\n".join("\n".join(part.lines()) for part in parts)


def write_json(parts: Iterable[Part], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()},
        "parts": [
            {"title": part.title, "figures": [each.as_json() for each in part.figures], "notes": list(part.notes)}
            for part in parts
        ],
    }
    file.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
