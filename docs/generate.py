"""Writes what the pages take from the code: `python docs/generate.py`, or `--check` that all of it is current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "problems.md"

sys.path.insert(0, str(ROOT))  # runs from a checkout that is not installed

from docs.drawings import drawn  # noqa: E402
from docs.regions import pages, refreshed  # noqa: E402
from halfcard.problems import RULES, Rule, Severity  # noqa: E402

HEAD: Final = """\
# Problems

A refusal ends with a code, and a warning begins with one. This page says what each code means and why the rule is
there. It is made from the table in `halfcard/problems.py` by `python docs/generate.py`; a test checks that both agree.

What a message says, in this order: where (the field), got (what stands there), the rule, the fix, the code.

"""
SECTIONS: Final = {
    Severity.DENY: "Refused unless a setting says otherwise",
    Severity.WARN: "Mentioned in a warning",
    Severity.OFF: "Off unless a setting says otherwise",
}


def render() -> str:
    return HEAD + "\n".join([*_index(), *(line for severity in Severity for line in _section(severity))])


def _index() -> list[str]:
    rows = [f"| [{code}](#{code.lower()}) | {rule.severity} | {rule.text} |" for code, rule in RULES.items()]
    return ["| code | by default | rule |", "|---|---|---|", *rows, ""]


def _section(severity: Severity) -> list[str]:
    rules = [rule for rule in RULES.values() if rule.severity is severity]
    return [f"## {SECTIONS[severity]}", "", *(line for rule in rules for line in _entry(rule))] if rules else []


def _entry(rule: Rule) -> list[str]:
    return [f"### {rule.code}", "", f"**{rule.text[0].upper()}{rule.text[1:]}.** {rule.why}", ""]


def wanted() -> dict[Path, str]:
    """Every page with a part that is made from the code, and every picture, as it should be."""
    written = {page: refreshed(page.read_text(encoding="utf-8")) for page in pages()}
    return written | {PAGE: render()} | {file: draw() for file, draw in drawn().items()}


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is not current")
    parser.add_argument("page", nargs="?", type=Path, help="only the page of problems, written there")
    arguments = parser.parse_args()
    made = {arguments.page: render()} if arguments.page else wanted()
    if arguments.check:
        stale = [str(page) for page, text in made.items() if not _says(page, text)]
        return f"{', '.join(stale)}: does not say what the code says; run python docs/generate.py" if stale else None
    for page, text in made.items():
        if not _says(page, text):
            page.write_text(text, encoding="utf-8")
    return None


def _says(page: Path, text: str) -> bool:
    return page.exists() and page.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
