"""What the pages name exists in the repository, and the generated parts are current."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from admission.__main__ import _parser as admission_parser
from certs.__main__ import _parser as certs_parser
from cli.__main__ import parser as cli_parser
from cli.command_tree import subcommands
from deviceplugin.arguments import add_arguments as add_agent_arguments
from docs.fragments import FRAGMENTS
from docs.regions import refreshed, used
from extender.__main__ import _parser as extender_parser
from halfcard.problems import RULES
from quota.__main__ import _parser as quota_parser

from .pages import PAGES, ROOT, anchors, inline_code, links, written

LOGGING: Final = ("admission", "certs", "deviceplugin", "extender", "kube", "quota", "serving")
_TOP: Final = frozenset(path.name for path in ROOT.iterdir())
_RECORD: Final = re.compile(r"halfcard\.dev/[a-z-]+")
_EVENT: Final = re.compile(r"`([^`]+)`")
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


# --- generated parts


@each_page
def test_generated_parts_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == refreshed(text), "run python docs/generate.py"


def test_every_fragment_is_used_on_a_page() -> None:
    assert {name for page in PAGES for name in used(page.read_text(encoding="utf-8"))} == set(FRAGMENTS)


@pytest.mark.timeout(180)  # it draws all pictures, and takes a minute on a busy machine
def test_the_generator_finds_every_page_current() -> None:
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_the_generator_finds_a_page_that_is_not_current() -> None:
    stale = "<!-- generated: limits -->\nno limits\n<!-- end -->"
    assert "no limits" not in refreshed(stale) != stale


# --- what they name


@each_page
def test_links_have_a_target(page: Path) -> None:
    for target in links(page):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@each_page
def test_paths_in_the_repository_exist(page: Path) -> None:
    named = [code.rstrip("/") for code in inline_code(page) if code.split("/")[0] in _TOP]
    assert [path for path in named if not (ROOT / path).exists()] == []


@each_page
def test_codes_exist(page: Path) -> None:
    assert set(re.findall(r"\bHC\d{3}\b", page.read_text(encoding="utf-8"))) <= set(RULES)


_OF_OTHERS: Final = {
    "platforms.md": {"--address", "--gpu-driver", "--install-nvidia-plugin", "--set", "--set-json"},
}
"""Options of the programs of others that a page names."""


@each_page
def test_options_exist(page: Path) -> None:
    named = {option for code in inline_code(page) for option in _OPTION.findall(code)}
    assert named - _OF_OTHERS.get(page.name, set()) <= {
        option for parser in _parsers() for option in parser._option_string_actions
    }


@each_page
def test_annotations_exist(page: Path) -> None:
    names = (ROOT / "halfcard" / "names.py").read_text(encoding="utf-8")
    assert [record for record in _RECORD.findall(written(page)) if record not in names] == []


def test_every_rule_against_escapes_is_on_the_security_page() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert [code for code in RULES if "HC020" <= code <= "HC027" and code not in page] == []


def test_the_table_of_log_lines_is_complete() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    rows = page.partition("## Log")[2].partition("## ")[0].splitlines()
    listed = {name for row in rows if row.startswith("| `") for name in _EVENT.findall(row.split("|")[1])}
    assert listed == {event for folder in LOGGING for event in _events(ROOT / folder)}


def test_the_picture_of_the_packages_shows_every_subcommand() -> None:
    picture = (ROOT / "docs" / "pictures" / "packages.svg").read_text(encoding="utf-8")
    for command in subcommands(cli_parser()):
        assert command in picture


def test_the_picture_of_the_packages_shows_the_checked_layers() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    packages = [package.strip() for layer in layers for package in layer.split("|")]
    drawn = ET.parse(ROOT / "docs" / "pictures" / "packages.svg").iter("{http://www.w3.org/2000/svg}text")
    assert [text.text for text in drawn if text.get("class") == "head"] == packages


def test_pictures_are_readable_in_light_and_dark() -> None:
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        light, _, dark = text.partition("prefers-color-scheme: dark")
        ET.fromstring(text)
        assert {".paper", "text"} <= set(re.findall(r"[.\w]+(?= \{ fill)", dark)), picture
        assert 'class="paper"' in dark and ".paper" in light, picture


_TELEPHONE: Final = 390 - 2 * 16
"""The width of text on a narrow screen, in CSS pixels."""

_SCROLLED: Final = {"packages.svg"}
"""Pictures that the site does not shrink on a narrow screen."""


def test_the_text_of_a_picture_is_readable_on_a_telephone() -> None:
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        width, sizes = int(ET.fromstring(text).get("width", "0")), re.findall(r"font-size[:=]\W*([\d.]+)", text)
        assert picture.name in _SCROLLED or min(map(float, sizes)) * _TELEPHONE / width > 10, picture
    style = (ROOT / "docs" / "website" / "site.css").read_text()
    assert set(re.findall(r"(\w+\.svg)", style)) == _SCROLLED


def _parsers() -> Iterator[argparse.ArgumentParser]:
    yield from _below(cli_parser())
    yield admission_parser()
    yield extender_parser()
    agent = argparse.ArgumentParser(add_help=False)
    add_agent_arguments(agent)
    yield agent
    yield from _below(certs_parser())
    yield quota_parser()
    for command in ("certs", "quota"):
        yield from subcommands(subcommands(cli_parser())[command]).values()
    check = argparse.ArgumentParser(add_help=False)
    check.add_argument("--check")  # of docs/generate.py
    yield check


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    yield from subcommands(parser).values()


def _events(folder: Path) -> Iterator[str]:
    """Yields the constant texts of calls such as log.event("judged", …)."""
    for source in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _logs(node.func) and node.args:
                text = node.args[0]
                if isinstance(text, ast.Constant):
                    yield str(text.value)


def _logs(function: ast.Attribute) -> bool:
    return function.attr in ("event", "batched", "warning", "error") and ast.unparse(function.value).endswith("log")
