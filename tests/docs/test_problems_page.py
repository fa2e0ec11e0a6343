"""The page of problems agrees with the table of rules from which it is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from halfcard.problems import RULES

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "problems.md"


def generate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "docs" / "generate.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_is_current() -> None:
    checked = generate("--check", PAGE)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_page_that_is_not_current_is_reported_and_not_changed(tmp_path: Path) -> None:
    page = tmp_path / "problems.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace(RULES["HC001"].text, "anything goes"), encoding="utf-8")
    stale = page.read_bytes()
    checked = generate("--check", page)
    assert checked.returncode == 1 and str(page) in checked.stderr
    assert page.read_bytes() == stale


def test_a_missing_page_is_reported_and_can_be_made(tmp_path: Path) -> None:
    page = tmp_path / "problems.md"
    assert generate("--check", page).returncode == 1
    assert generate(page).returncode == 0
    assert generate("--check", page).returncode == 0


def test_every_rule_has_an_anchor_for_links() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for code, rule in RULES.items():
        assert f"\n### {code}\n" in page
        assert f"[{code}](#{code.lower()}) | {rule.severity} | {rule.text}" in page
        assert rule.why in page
