"""The changelog is for operators: the code's version has a section, and "To do:" marks what operators must do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from halfcard import __version__

from .pages import ROOT

TEXT: Final = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NOT_YET: Final = "not released yet"
KINDS: Final = frozenset({"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})
BREAKING: Final = frozenset({"Changed", "Deprecated", "Removed"})
_SECTION: Final = re.compile(r"^## (\d+\.\d+\.\d+), (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str
    text: str


def versions() -> list[tuple[str, str]]:
    """Returns each version and its release date, as in the headings."""
    return _SECTION.findall(TEXT)


def entries(text: str = TEXT) -> list[Entry]:
    found = []
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        kind, _, rest = part.partition("\n")
        items = re.split(r"^- ", rest.partition("\n## ")[0], flags=re.MULTILINE)[1:]
        found += [Entry(kind, " ".join(item.partition("\n\n")[0].split())) for item in items]
    return found


def flaws(entry: Entry) -> list[str]:
    """Returns what is wrong with an entry for an operator who upgrades."""
    checks = {
        f"no such kind: {entry.kind}": entry.kind in KINDS,
        "is not a sentence": entry.text.endswith((".", "`.", ").")),
        "does not say `To do:`": entry.kind not in BREAKING or "To do: " in entry.text,
        "spells `To do:` otherwise": not re.search(r"to[- ]do:|TODO|To do [^:]", entry.text.replace("To do: ", "")),
    }
    return [flaw for flaw, holds in checks.items() if not holds]


def test_every_heading_is_a_version_and_its_date() -> None:
    assert len(versions()) == len(re.findall(r"^## ", TEXT, re.MULTILINE))
    for _, released in versions():
        assert released == NOT_YET or date.fromisoformat(released).isoformat() == released


def test_the_first_section_is_the_version_of_the_code_and_only_it_may_be_unreleased() -> None:
    assert versions()[0][0] == __version__
    assert [version for version, released in versions()[1:] if released == NOT_YET] == []


def test_newer_versions_come_before_older_ones() -> None:
    order = [tuple(int(part) for part in version.split(".")) for version, _ in versions()]
    assert order == sorted(set(order), reverse=True)


def test_every_entry_is_a_sentence_of_a_known_kind_and_marks_what_to_do() -> None:
    assert entries()
    assert [(entry.text[:60], flaw) for entry in entries() for flaw in flaws(entry)] == []


def test_an_entry_without_instructions_is_found() -> None:
    text = "### Removed\n\n- The old option.\n- Another. To do: nothing.\n\n### New\n\n- It"
    assert [flaws(entry) for entry in entries(text)] == [
        ["does not say `To do:`"],
        [],
        ["no such kind: New", "is not a sentence"],
    ]
