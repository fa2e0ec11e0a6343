"""On the site, links lead where they lead in the repository; `make docs` builds it, and is strict about the rest."""

from __future__ import annotations

from pathlib import Path
from posixpath import normpath
from typing import Final

import pytest
import yaml

from docs.website.links import for_site, linked, on_site
from docs.website.sources import page_of, sources, uris

from .pages import PAGES, ROOT

FOLDERS: Final = frozenset({"deploy/rbac"})
ALL: Final = {*(str(page.relative_to(ROOT)) for page in PAGES), *sources()}


def here(text: str, page: str = "docs/a.md") -> str:
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
def test_a_file_has_its_place_on_the_site(path: str, uri: str) -> None:
    assert on_site(path, is_folder=False) == uri


def test_links_out_of_the_pages_lead_to_what_the_site_shows_of_the_repository() -> None:
    assert here("[a](../deploy/agent.yaml) [b](../deploy/rbac)") == (
        "[a](repository/deploy/agent.yaml.md) [b](repository/deploy/rbac/index.md)"
    )
    assert (
        here("[q](docs/quota.md#who) ![p](docs/pictures/x.svg)", "README.md")
        == "[q](quota.md#who) ![p](pictures/x.svg)"
    )
    assert here("[h](../../README.md#what)", "deploy/examples/README.md") == "[h](../../../halfcard.md#what)"


def test_what_is_no_path_of_ours_stays_as_it_is() -> None:
    text = "[far](https://example.com/a.md) [near](#here) ![](pictures/a.svg)\n\n```text\n[code](../x.yaml)\n```\n"
    assert here(text) == text


def test_tags_that_our_tests_read_are_taken_off_fences() -> None:
    assert here("```sh not-run\nmake\n```\n") == "```sh\nmake\n```\n"


def test_every_link_of_the_site_leads_to_something_on_it() -> None:
    there = {on_site(path, is_folder=is_folder(path)) for path in ALL}
    there |= {f"pictures/{file.name}" for file in (ROOT / "docs" / "pictures").iterdir()}
    for uri, path in uris(ALL).items():
        source = path.removesuffix("/index")
        moved = for_site(page_of(ROOT, source), path, is_folder)
        goals = {normpath(Path(uri).parent / goal) for goal in linked(moved, "x")}
        assert goals <= there, (path, goals - there)


def test_the_menu_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")[2]
    entries = [page for section in yaml.safe_load(text) for pages in section.values() for page in pages]
    named = [page if isinstance(page, str) else next(iter(page.values())) for page in entries]
    assert sorted(named) == sorted(on_site(str(page.relative_to(ROOT)), is_folder=False) for page in PAGES)


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    named = {*linked(index, "docs/README.md"), "docs/README.md"}
    assert {str(page.relative_to(ROOT)) for page in PAGES} <= named
