"""The hooks that mkdocs calls while it builds the site; mkdocs loads this file by path, so imports are absolute."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from mkdocs.structure.files import File, Files

from docs.regions import ROOT
from docs.website import links  # a name such as on_site would be called as a hook
from docs.website.sources import sources, uris

_EXTERNAL: Final = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^\s\">]+")
_log: Final = logging.getLogger("mkdocs.hooks.halfcard")


def on_files(files: Files, config: Any) -> Files:
    for path, text in sources().items():
        files.append(File.generated(config, links.on_site(path, is_folder=(ROOT / path).is_dir()), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return links.for_site(markdown, _in_repository(page.file.src_uri), lambda path: (ROOT / path).is_dir())


def _in_repository(uri: str) -> str:
    return uris(sources()).get(uri, f"docs/{uri}")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Warns about content from other servers, so that a strict build fails: the site must work without a network."""
    for found in _EXTERNAL.findall(output):
        _log.warning("%s loads content from another server: %s", page.file.src_uri, found)
    return output
