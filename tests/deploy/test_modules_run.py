"""Every `python -m MODULE` in charts, scripts, pages and tests names a module that Python can run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

_NOT_INSTALLED: Final = {
    "mkdocs": "comes with `make docs` alone",
    "ziglang": "the tests that compile C install it when they need it",
    "fire_smoke": "the program of a user in an example",
}
_READ: Final = (".ci", "CONTRIBUTING.md", "Makefile", "README.md", "bench", "cli", "deploy", "docs", "scripts", "tests")
_PYTHON: Final = r"""(?:\bpython3?"?|"\$python"|\$\(PY\)|sys\.executable|\{python\}|\{sys\.executable\}"?),?"""
_RUN: Final = re.compile(_PYTHON + r"""\s*(?:"-m", "|-m,? )([a-z_][a-zA-Z_0-9.]*)""")


def _modules() -> dict[str, str]:
    """Returns the modules that the tree's files run, each with one place that does."""
    paths = [path for name in _READ for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_file()]
    found = {}
    for path in paths:
        for match in _RUN.finditer(path.read_text("utf-8", errors="ignore")):
            found[match[1].rstrip(".")] = str(path.relative_to(ROOT))
    return found


def _runs(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    if spec is None or spec.submodule_search_locations is None:
        return spec is not None
    return importlib.util.find_spec(f"{module}.__main__") is not None


def test_every_module_that_a_file_runs_exists() -> None:
    modules = _modules()
    assert {"admission", "deploy.chart", "bench.fuzz"} <= modules.keys()  # the pattern still works
    missing = {module: file for module, file in modules.items() if module not in _NOT_INSTALLED and not _runs(module)}
    assert missing == {}
