"""Makes a page of every file and folder outside docs/ that a page links to, for the site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from docs.regions import ROOT

from .links import linked, on_site

_ROOT_PAGES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LANGUAGES: Final = {".yaml": "yaml", ".json": "json", ".py": "python", "": "text", ".tpl": "text", ".txt": "text"}


def sources(root: Path = ROOT) -> Mapping[str, str]:
    """Returns the text of each page to generate, by its path in the repository."""
    texts: dict[str, str] = {}
    waiting = [*_ROOT_PAGES, *(str(page.relative_to(root)) for page in sorted((root / "docs").glob("*.md")))]
    while waiting:
        path = waiting.pop()
        if path not in texts and not path.endswith(".svg") and (root / path).exists():  # mkdocs reports missing files
            texts[path] = page_of(root, path)
            waiting += linked(texts[path], _within(root, path))
    return {path: text for path, text in texts.items() if not on_docs(path)}


def on_docs(path: str) -> bool:
    return path.startswith("docs/") and path.endswith(".md")


def page_of(root: Path, path: str) -> str:
    """Returns a Markdown file unchanged, and anything else as a page that shows it."""
    file = root / path
    if file.is_dir():
        return _listing(path, sorted(each.name for each in file.iterdir() if not each.name.startswith(("_", "."))))
    text = file.read_text(encoding="utf-8")
    return text if path.endswith(".md") else _shown(path, text)


def uris(paths: Iterable[str], root: Path = ROOT) -> Mapping[str, str]:
    """Returns, by path on the site, the path in the repository from which the links of each page start."""
    return {on_site(path, is_folder=(root / path).is_dir()): _within(root, path) for path in paths}


def _within(root: Path, path: str) -> str:
    """Returns the path from which links start; those of a folder's listing start inside the folder."""
    return f"{path}/index" if (root / path).is_dir() else path


def _listing(path: str, entries: Iterable[str]) -> str:
    return f"# {path}\n\n" + "".join(f"- [{each}]({each})\n" for each in entries)


def _shown(path: str, text: str) -> str:
    return f"# {path}\n\n````{_LANGUAGES.get(Path(path).suffix, 'text')}\n{text.rstrip()}\n````\n"
