"""Reads manifests: YAML or JSON, several documents in a file, files in folders, Lists of objects.

Invariant: a document means what it means to kubectl, and an unreadable one is reported with file and line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from halfcard.problems import printable

from .json_documents import NotJsonError, parse_json
from .manifest_error import ManifestError
from .yaml_documents import Parsed, parse_yaml
from .yaml_scalars import Number

__all__ = ["Document", "ManifestError", "Number", "files_below", "parse", "read_file", "read_path", "to_json"]

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_LIST: Final = "List"


@dataclass(frozen=True, slots=True)
class Document:
    """One Kubernetes object and its place in a file."""

    obj: dict[str, Any]
    source_file: str
    line: int

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    def refused(self, what: str, fix: str) -> ManifestError:
        return ManifestError(self.source_file, self.line, what=what, fix=fix)


def parse(text: str | bytes, source_file: str) -> Iterator[Document]:
    """Yields the objects of a text, in order; skips empty documents and splits Lists.

    Raises:
        ManifestError: at the first unreadable place.
    """
    for parsed in _parsed(_decoded(text, source_file), source_file):
        if parsed.value is not None:
            yield from _objects(parsed.value, parsed, parsed.line, source_file)


def read_file(path: Path) -> Iterator[Document]:
    """Parses a file; a file that cannot be opened is a ManifestError too."""
    yield from parse(_bytes(path), str(path))


def read_path(path: Path) -> Iterator[Document]:
    """Yields the objects of a file, or of all manifests below a folder."""
    for file in files_below(path) if path.is_dir() else (path,):
        yield from read_file(file)


def files_below(folder: Path) -> list[Path]:
    """Returns the manifests below a folder, sorted; names with a leading dot belong to editors and mounts."""
    found = []
    for place, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(place, name) for name in sorted(files) if not name.startswith("."))
        found += [path for path in paths if path.suffix in SUFFIXES and _is_regular(path)]
    return found


def to_json(obj: Any) -> bytes:
    """Returns the bytes that kubectl would send, with the digits of numbers unchanged."""
    return msgspec.json.encode(obj, enc_hook=lambda number: msgspec.Raw(number.as_json()))


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # a broken link, or deleted since the folder was listed
        return False
    except OSError:  # reading it reports why
        return True


def _refuse_folder(error: OSError) -> NoReturn:
    raise _out_of_reach(str(error.filename), error) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _out_of_reach(str(path), error) from None


def _out_of_reach(path: str, error: OSError) -> ManifestError:
    what = f"cannot be read: {error.strerror}"
    return ManifestError(path, 1, what=what, fix="check the path and its permissions")


def _decoded(text: str | bytes, source: str) -> str:
    decoded = text if isinstance(text, str) else _from_utf8(text, source)
    if decoded.startswith("\ufeff"):
        raise ManifestError(source, 1, what="a byte order mark", fix="save it as UTF-8 without one")
    return decoded


def _from_utf8(text: bytes, source: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        what = f"the byte 0x{text[error.start]:02x} is no UTF-8"
        raise ManifestError(source, line, what=what, fix="save it as UTF-8") from None


def _parsed(text: str, source: str) -> Iterator[Parsed]:
    """Parses text that begins with a brace as JSON, or as YAML where it is no JSON, like kubectl."""
    if not text.lstrip().startswith("{"):
        yield from parse_yaml(text, source)
        return
    try:
        documents = list(parse_json(text, source))
    except NotJsonError as no_json:
        try:
            documents = list(parse_yaml(text, source))
        except ManifestError:
            raise no_json from None
    yield from documents


def _objects(value: Any, parsed: Parsed, line: int, source: str) -> Iterator[Document]:
    document = Document(_checked(value, line, source), source, line)
    items = document.obj.get("items")
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


def _checked(value: Any, line: int, source: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        what = f"a document is a mapping, got {_shown(value)}"
        raise ManifestError(source, line, what=what, fix="begin it with apiVersion: and kind:")
    if not isinstance(value.get("kind"), str) or not value["kind"]:
        raise ManifestError(source, line, what="the object has no kind", fix="add kind: and apiVersion:")
    return value


def _shown(value: Any) -> str:
    return "a list" if isinstance(value, list) else f'"{printable(str(value), 40)}"'
