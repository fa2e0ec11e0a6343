"""A copy of the product, to which a test adds something by the steps of "To add" in docs/architecture.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = (
    *("admission", "certs", "cli", "deploy", "deviceplugin", "extender"),
    *("halfcard", "kube", "quota", "serving", "settings", "simulation"),
)


@dataclass(frozen=True, slots=True)
class Tree:
    root: Path
    touched: set[str] = field(default_factory=set)

    def copy(self, *paths: str) -> None:
        """Copies files and folders of the checkout that are no part of the product."""
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, self.root / path, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / path, self.root / path)

    def add(self, path: str, text: str) -> None:
        self.touched.add(path)
        file = self.root / path
        assert not file.exists()
        file.write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        self.touched.add(path)
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        file.write_text(text.replace(old, new))

    def append(self, path: str, text: str) -> None:
        with (self.root / path).open("a") as file:
            file.write(text)

    def printed(self, script: str) -> str:
        """Runs a script in the copy, and returns what it prints."""
        done = self.python("-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs python in the copy, which hides the product of the checkout; its tests can be imported."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def copy_of_the_product(folder: Path) -> Tree:
    root = folder / "tree"
    for package in PRODUCT:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(root)


def named_by_the_page(title: str) -> set[str]:
    """The paths of one step of "To add"; a folder for a file that the reader names."""
    page = (ROOT / "docs" / "architecture.md").read_text().partition("\n## To add\n")[2]
    (step,) = re.findall(rf"^- \*\*{title}\*\*:(.*(?:\n  .*)*)", page, re.MULTILINE)
    return set(re.findall(r"`([\w./-]+/[\w.-]*)`", step))


def not_as_written(tree: Tree, *titles: str) -> set[str]:
    """Returns the files that were touched and are not in these steps of the page, and the reverse."""
    named = set[str]().union(*map(named_by_the_page, titles))
    return {file if file in named else file[: file.rfind("/") + 1] for file in tree.touched} ^ named
