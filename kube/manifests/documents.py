"""Reads manifests: YAML or JSON, several documents in a file, files in folders, Lists of objects.

Invariant: a document means what it means to kubectl, and an unreadable one is reported with file and line and stops no
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from halfcard.patches import from_field_path
from halfcard.problems import printable

from .encoding import decoded
from .json_documents import NotJsonError, parse_json
from .manifest_error import ManifestError, NoObjectError
from .manifest_files import files_below, read_bytes
from .yaml_documents import Lines, Parsed, parse_yaml
from .yaml_scalars import Number

__all__ = ["Document", "ManifestError", "Number", "files_below", "parse", "parse_each", "read_file", "to_json"]

_LIST: Final = "List"
_SEPARATOR: Final = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One Kubernetes object and its place in a file."""

    obj: dict[str, Any]
    source_file: str
    line: int
    lines: Lines = field(default_factory=dict, compare=False, repr=False)

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    def line_of(self, where: str) -> int:
        """Returns the line of a field, or of the deepest field above it that the document has; JSON has only the
        document's.
        """
        value: Any = self.obj
        line = self.line
        for part in from_field_path(where):
            known = self.lines.get(id(value), ())
            position = list(value).index(part) if isinstance(value, dict) and part in value else part
            if not isinstance(position, int) or position >= len(known):
                break
            line, value = known[position], value[part]
        return line

    def refused(self, what: str, fix: str) -> ManifestError:
        return ManifestError(self.source_file, self.line, what=what, fix=fix)


def parse(text: str | bytes, source_file: str) -> Iterator[Document]:
    """Yields the objects of a text, in order; skips empty documents and splits Lists.

    Raises:
        ManifestError: at the first unreadable place.
    """
    for each in parse_each(text, source_file):
        if isinstance(each, ManifestError):
            raise each
        yield each


def parse_each(text: str | bytes, source_file: str) -> Iterator[Document | ManifestError]:
    """Yields the objects of a text like `parse`, and an error in the place of each one that cannot be read."""
    try:
        whole = decoded(text, source_file)
    except ManifestError as error:
        yield error
        return
    for parsed in _readable(whole, source_file):
        if isinstance(parsed, ManifestError):
            yield parsed
        elif parsed.value is not None:
            yield from _objects(parsed.value, parsed, parsed.line, source_file)


def read_file(path: Path) -> Iterator[Document]:
    """Parses a file; a file that cannot be opened is a ManifestError too."""
    yield from parse(read_bytes(path), str(path))


def read_path(path: Path) -> Iterator[Document]:
    """Yields the objects of a file, or of all manifests below a folder."""
    for file in files_below(path) if path.is_dir() else (path,):
        yield from read_file(file)


def to_json(obj: Any) -> bytes:
    """Returns the bytes that kubectl would send, with the digits of numbers unchanged."""
    return msgspec.json.encode(obj, enc_hook=lambda number: msgspec.Raw(number.as_json()))


def _readable(text: str, source: str, above: int = 0) -> Iterator[Parsed | ManifestError]:
    """Parses a text, or where that fails each of its documents alone; `above` counts the lines before it."""
    try:
        found = list(_parsed(text, source, above))
    except ManifestError as error:
        yield from _each_alone(text, source, above) or [error]
    else:
        yield from found


def _each_alone(text: str, source: str, above: int) -> list[Parsed | ManifestError]:
    """Splits a text at its separators; empty where it is one document."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text) if match.start())]
    found: list[Parsed | ManifestError] = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        if len(starts) > 1:
            found += _readable(text[start:end], source, above)
        above += text.count("\n", start, end)
    return found


def _parsed(text: str, source: str, above: int) -> Iterator[Parsed | ManifestError]:
    """Parses text that begins with a brace as JSON, or as YAML where it is no JSON, like kubectl."""
    if not text.lstrip().startswith("{"):
        yield from parse_yaml(text, source, above)
        return
    try:
        documents = list(parse_json(text, source))
    except NotJsonError as no_json:
        try:
            documents = list(parse_yaml(text, source, above))
        except ManifestError:
            raise no_json from None
    yield from documents


def _objects(value: Any, parsed: Parsed, line: int, source: str) -> Iterator[Document | ManifestError]:
    if mistake := _mistake(value, line, source, is_item=value is not parsed.value):
        yield mistake
        return
    document = Document(value, source, line, parsed.lines)
    items = value.get("items")
    if not (document.kind.endswith(_LIST) and isinstance(items, list)):
        yield document
        return
    lines: Iterable[int] = parsed.lines.get(id(items), [line] * len(items))
    for item, at in zip(items, lines, strict=True):
        yield from _objects(_with_type(item, document), parsed, at, source)


def _with_type(item: Any, document: Document) -> Any:
    """Adds the kind to an item of a typed list: items of a PodList may omit it."""
    kind = document.kind.removesuffix(_LIST)
    if not kind or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": document.obj.get("apiVersion"), "kind": kind, **item}


def _mistake(value: Any, line: int, source: str, *, is_item: bool) -> ManifestError | None:
    if isinstance(value, dict) and isinstance(value.get("kind"), str) and value["kind"]:
        return None
    what, fix = "the object has no kind", "add kind: and apiVersion:"
    if not isinstance(value, dict):
        what, fix = f"a document is a mapping, got {_shown(value)}", "begin it with apiVersion: and kind:"
    if is_item or (isinstance(value, dict) and "apiVersion" in value):
        return ManifestError(source, line, what=what, fix=fix)
    return NoObjectError(source, line, what=what, fix=fix)


def _shown(value: Any) -> str:
    return "a list" if isinstance(value, list) else f'"{printable(str(value), 40)}"'
