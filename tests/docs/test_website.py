"""The site's links have the same targets as in the repository, and menu, index and headings agree."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath
from typing import Final

import pytest
import yaml

from docs.programs import command_names
from docs.website.links import for_site, linked, on_site
from docs.website.sources import page_of, sources, uris
from halfcard import __version__

from .pages import PAGES, ROOT

FOLDERS: Final = frozenset({"deploy/rbac"})
INDEX: Final = (ROOT / "docs" / "README.md").read_text()
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#]+\.md)\)")
SHOWN: Final = {*(str(page.relative_to(ROOT)) for page in PAGES), *sources()}


def moved_to_site(text: str, page: str = "docs/a.md") -> str:
    return for_site(text, page, FOLDERS.__contains__)


def is_folder(path: str) -> bool:
    return (ROOT / path).is_dir()


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("docs/quota.md", "quota.md"),
        ("docs/pictures/flow.svg", "pictures/flow.svg"),
        ("README.md", "halfcard.md"),
        ("deploy/examples/README.md", "repository/deploy/examples/README.md"),
        ("deploy/agent.yaml", "repository/deploy/agent.yaml.md"),
        ("docs/generate.py", "repository/docs/generate.py.md"),
    ],
)
def test_each_file_has_its_path_on_the_site(path: str, uri: str) -> None:
    assert on_site(path, is_folder=False) == uri


def test_links_to_other_files_of_the_repository_lead_to_pages_of_the_site() -> None:
    assert moved_to_site("[a](../deploy/agent.yaml) [b](../deploy/rbac)") == (
        "[a](repository/deploy/agent.yaml.md) [b](repository/deploy/rbac/index.md)"
    )
    assert (
        moved_to_site("[q](docs/quota.md#who) ![p](docs/pictures/x.svg)", "README.md")
        == "[q](quota.md#who) ![p](pictures/x.svg)"
    )
    assert moved_to_site("[h](../../README.md#what)", "deploy/examples/README.md") == "[h](../../../halfcard.md#what)"


def test_other_links_are_not_changed() -> None:
    text = "[far](https://example.com/a.md) [near](#here) ![](pictures/a.svg)\n\n```text\n[code](../x.yaml)\n```\n"
    assert moved_to_site(text) == text


def test_tags_for_tests_are_removed_from_fences() -> None:
    assert moved_to_site("```sh not-run\nmake\n```\n") == "```sh\nmake\n```\n"


def test_every_link_of_the_site_has_a_target_on_it() -> None:
    targets = {on_site(path, is_folder=is_folder(path)) for path in SHOWN}
    targets |= {f"pictures/{file.name}" for file in (ROOT / "docs" / "pictures").iterdir()}
    for uri, path in uris(SHOWN).items():
        source = path.removesuffix("/index")
        moved = for_site(page_of(ROOT, source), path, is_folder)
        linked_pages = {normpath(Path(uri).parent / target) for target in linked(moved, "x")}
        assert linked_pages <= targets, (path, linked_pages - targets)


def test_the_menu_has_every_page() -> None:
    named = [page for pages in menu().values() for page in pages]
    assert sorted(named) == sorted(on_site(str(page.relative_to(ROOT)), is_folder=False) for page in PAGES)


def test_the_index_links_to_every_page() -> None:
    named = {*linked(INDEX, "docs/README.md"), "docs/README.md"}
    assert {str(page.relative_to(ROOT)) for page in PAGES} <= named


def test_the_menu_names_a_page_by_its_heading() -> None:
    """An entry without a name gets the page's heading."""
    given = {page: name for pages in menu().values() for page, name in pages.items() if name}
    assert given == {page: headings()[page] for page in given}


def test_the_menu_names_the_commands_that_have_a_page() -> None:
    named = {word for page, heading in headings().items() if "halfcard " in heading for word in heading.split()}
    assert {"review", "serve", "inspect", "explain", "top", "doctor", "simulate"} <= named & {*command_names()}


def test_the_start_page_has_the_version_a_picture_and_a_next_step() -> None:
    start = INDEX.partition("\n## ")[0]
    assert f"Halfcard {__version__}\n" in start
    assert "](pictures/flow.svg)" in start and "**Next: the [Quick start](quick-start.md)**" in start


def test_make_docs_names_the_page_to_open() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs:")[2].partition("\n\n")[0]
    assert "build/site/index.html" in recipe and (ROOT / "mkdocs.yml").read_text().count("site_dir: build/site") == 1


def test_the_index_names_a_page_by_its_heading() -> None:
    links = [(name, on_site(normpath(f"docs/{path}"), is_folder=False)) for name, path in _LINK.findall(INDEX)]
    assert [(name, page) for name, page in links if headings().get(page, name) != name] == []


def test_the_index_has_the_sections_of_the_menu() -> None:
    sections = {text.partition("\n")[0]: text for text in INDEX.split("\n## ")[1:]}
    shown = {
        title: [on_site(path, is_folder=False) for path in linked(text, "docs/README.md")]
        for title, text in sections.items()
    }
    menu_sections = {title: list(pages) for title, pages in menu().items() if title != "Start"}
    assert {title: [page for page in pages if page in headings()] for title, pages in shown.items()} == menu_sections


def menu() -> dict[str, dict[str, str]]:
    """Returns the pages of each section, with the name that the menu gives them, if any."""
    text = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")[2]
    entries: dict[str, list[str | dict[str, str]]] = {
        title: pages for section in yaml.safe_load(text) for title, pages in section.items()
    }
    return {title: {page: name for each in pages for page, name in _entry(each)} for title, pages in entries.items()}


def _entry(entry: str | dict[str, str]) -> list[tuple[str, str]]:
    return [(entry, "")] if isinstance(entry, str) else [(page, name) for name, page in entry.items()]


def headings() -> dict[str, str]:
    """Returns the first heading of each page, by its path on the site."""
    return {
        on_site(str(page.relative_to(ROOT)), is_folder=False): page.read_text().partition("\n")[0].removeprefix("# ")
        for page in PAGES
    }
