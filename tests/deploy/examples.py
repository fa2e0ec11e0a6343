"""The examples in deploy/examples: folders of manifests, the command's output about them, and READMEs."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cli.__main__ import main

ROOT: Final = Path(__file__).parents[2] / "deploy" / "examples"
_SHOWN: Final = re.compile(r"```console\n\$ (?P<command>halfcard [^\n]*)\n(?P<output>.*?)```\n", re.DOTALL)
_CODE: Final = re.compile(r"\[(HC\d{3})\]")


@dataclass(frozen=True, slots=True)
class Example:
    folder: Path

    @property
    def readme(self) -> Path:
        return self.folder / "README.md"

    @property
    def expected(self) -> Path:
        return self.folder / "expected.json"

    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.expected.read_text())["items"]
        return found

    def judged(self) -> str:
        """Reviews all its manifests with the state of its cluster."""
        return self.answer("halfcard review -f manifests --state state -o json")

    def answer(self, command: str) -> str:
        """Returns the output of the command in the folder."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as output:
            main(shlex.split(command)[1:])
        return output.getvalue()

    def shown(self) -> dict[str, str]:
        """Returns the commands of the README, and the output below each."""
        return {match["command"]: match["output"] for match in _SHOWN.finditer(self.readme.read_text())}

    def refreshed(self) -> str:
        """Returns the README with the current output."""

        def with_answer(match: re.Match[str]) -> str:
            command = match["command"]
            return f"```console\n$ {command}\n{self.answer(command)}```\n"

        return _SHOWN.sub(with_answer, self.readme.read_text())


EXAMPLES: Final = tuple(Example(path.parent) for path in sorted(ROOT.glob("*/manifests")))


def title(item: dict[str, Any]) -> str:
    return f"{item['kind']} {item['namespace']}/{item['name']}"


def verdict(item: dict[str, Any]) -> str:
    """Returns a word for the verdict, the codes, and whether the object was repaired."""
    codes = [problem["code"] for problem in item["problems"]]
    notes = False
    for warning in item["warnings"]:
        found = _CODE.findall(warning)
        codes += found
        notes = notes or not found
    words = ["allowed" if item["allowed"] else "refused", *sorted(set(codes))]
    return " ".join(words + ["noted"] * notes + ["repaired"] * bool(item["patch"]))
