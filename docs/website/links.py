"""Where each file of the repository is on the site, and pages whose links say so. No I/O.

The site's pages are those of docs/; what else they link to, a manifest or a module, is shown as a page of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath as Path
from posixpath import normpath, relpath
from typing import Final

_OF_THE_ROOT: Final = {"README.md": "halfcard.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_SHOWN: Final = (".md", ".svg")
_FENCE: Final = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_TAGS: Final = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_site(path: str, *, is_folder: bool) -> str:
    """A path of the repository as the site has it."""
    if path in _OF_THE_ROOT:
        return _OF_THE_ROOT[path]
    if path.startswith("docs/") and path.endswith(_SHOWN):
        return path.removeprefix("docs/")
    return f"repository/{path}/index.md" if is_folder else f"repository/{path.removesuffix('.md')}.md"


def linked(text: str, page: str) -> Iterator[str]:
    """The paths of the repository to which a page of it links."""
    for found in _LINK.finditer(_FENCE.sub("", text)):
        yield _resolved(found["path"], page)


def for_site(text: str, page: str, is_folder: Callable[[str], bool]) -> str:
    """The page with the site's links, and without what only our tests read in the heads of its fences."""

    def rewritten(found: re.Match[str]) -> str:
        path = _resolved(found["path"], page)
        goal = on_site(path, is_folder=is_folder(path))
        return relpath(goal, Path(here).parent) + (found["anchor"] or "")

    here = on_site(page, is_folder=is_folder(page))
    return _outside_fences(_TAGS.sub(r"\1", text), lambda prose: _LINK.sub(rewritten, prose))


def _resolved(path: str, page: str) -> str:
    return normpath(Path(page).parent / path)


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])
