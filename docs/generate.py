"""Writes the generated parts of the pages; with `--check` it only checks that they are current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "problems.md"

sys.path.insert(0, str(ROOT))  # also runs in a checkout that is not installed

from docs.drawings import drawn  # noqa: E402
from docs.regions import pages, refreshed  # noqa: E402
from halfcard.problems import RULES, Rule, Severity  # noqa: E402

HEAD: Final = """\
# Problems

A refusal ends with a code, and a warning begins with one. This page says what each code means, and why the rule exists.
`python docs/generate.py` makes it from the table in `halfcard/problems.py`; a test checks that both agree.

A message says, in this order: where (the field), got (its value), the rule, the fix, the code.

"""
SECTIONS: Final = {
    Severity.DENY: "Refused by default",
    Severity.WARN: "Reported in a warning by default",
    Severity.OFF: "Off by default",
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
    """Returns the current text of every page and every generated picture."""
    written = {page: refreshed(page.read_text(encoding="utf-8")) for page in pages()}
    return written | {PAGE: render()} | {file: draw() for file, draw in drawn().items()}


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is not current")
    parser.add_argument("page", nargs="?", type=Path, help="write only the page of problems, to this path")
    arguments = parser.parse_args()
    generated = {arguments.page: render()} if arguments.page else wanted()
    if arguments.check:
        stale = [str(page) for page, text in generated.items() if not _is_current(page, text)]
        return f"{', '.join(stale)}: is not current; run python docs/generate.py" if stale else None
    for page, text in generated.items():
        if not _is_current(page, text):
            page.write_text(text, encoding="utf-8")
    return None


def _is_current(page: Path, text: str) -> bool:
    return page.exists() and page.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
