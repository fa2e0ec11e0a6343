"""Maps files of the repository to pages of the site, and rewrites links. No I/O.

The pages of docs/ are pages of the site. Any other linked file, such as a manifest or a module, gets a generated page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath as Path
from posixpath import normpath, relpath
from typing import Final

_ROOT_PAGES: Final = {"README.md": "halfcard.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_SHOWN: Final = (".md", ".svg")
_FENCE: Final = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_TAGS: Final = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_site(path: str, *, is_folder: bool) -> str:
    """Returns the path on the site of a file or folder of the repository."""
    if path in _ROOT_PAGES:
        return _ROOT_PAGES[path]
    if path.startswith("docs/") and path.endswith(_SHOWN):
        return path.removeprefix("docs/")
    return f"repository/{path}/index.md" if is_folder else f"repository/{path.removesuffix('.md')}.md"


def linked(text: str, page: str) -> Iterator[str]:
    """Yields the paths in the repository that a page links to."""
    for found in _LINK.finditer(_FENCE.sub("", text)):
        yield _resolved(found["path"], page)


def for_site(text: str, page: str, is_folder: Callable[[str], bool]) -> str:
    """Returns the page with the site's links, and without the tags of fences, which only tests read."""

    def rewritten(found: re.Match[str]) -> str:
        path = _resolved(found["path"], page)
        target = on_site(path, is_folder=is_folder(path))
        return relpath(target, Path(source).parent) + (found["anchor"] or "")

    source = on_site(page, is_folder=is_folder(page))
    return _outside_fences(_TAGS.sub(r"\1", text), lambda prose: _LINK.sub(rewritten, prose))


def _resolved(path: str, page: str) -> str:
    return normpath(Path(page).parent / path)


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])
