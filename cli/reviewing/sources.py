"""Reads what is to be reviewed, completely: a mistake in one place is an entry of its own, and stops nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kube.manifests.documents import Document, parse_each
from kube.manifests.encoding import decoded
from kube.manifests.manifest_error import ManifestError, NoObjectError
from kube.manifests.manifest_files import files_below, read_bytes
from kube.manifests.unrendered import KUSTOMIZE_GROUP, is_kustomization, unrendered_chart, unrendered_template

STDIN: Final = "standard input"


class Skipped(NamedTuple):
    """A file in a folder that is of another program: no document in it is an object."""

    file: str
    line: int
    what: str


Entry = Document | ManifestError | Skipped


def entries(files: Iterable[str], *, allow_empty: bool) -> Iterator[Entry]:
    """Yields the objects and errors of every file, folder or `-`, in order, and each error once."""
    shown: set[str] = set()
    for file in files:
        for each in _or_nothing(file, allow_empty=allow_empty):
            if isinstance(each, ManifestError):
                if str(each) in shown:
                    continue
                shown.add(str(each))
            yield each


def _or_nothing(file: str, *, allow_empty: bool) -> Iterator[Entry]:
    is_empty = not allow_empty
    for each in _source(file):
        is_empty = is_empty and isinstance(each, Skipped)
        yield each
    if is_empty:
        fix = "check what writes it, or allow it with --allow-empty"
        yield ManifestError(STDIN if file == "-" else file, 1, what="there is no object", fix=fix)


def _source(file: str) -> Iterator[Entry]:
    if file == "-":
        yield from _texts(sys.stdin.buffer.read(), STDIN)
        return
    try:
        yield from _folder(Path(file)) if Path(file).is_dir() else _file(Path(file))
    except ManifestError as error:
        yield error


def _folder(folder: Path) -> Iterator[Entry]:
    for file in files_below(folder):
        try:
            found: list[Entry] = [*_file(file)]
        except ManifestError as error:
            found = [error]
        if found and all(isinstance(each, NoObjectError) for each in found):
            found = [Skipped(str(file), 1, "no Kubernetes object")]
        yield from found


def _file(file: Path) -> Iterator[Document | ManifestError]:
    if chart := unrendered_chart(file):
        yield chart
    elif is_kustomization(file):  # its kind may be missing
        yield Document({"apiVersion": f"{KUSTOMIZE_GROUP}/v1beta1", "kind": "Kustomization"}, str(file), 1)
    else:
        yield from _texts(read_bytes(file), str(file))


def _texts(text: bytes, source: str) -> Iterable[Document | ManifestError]:
    """Yields the entries of a text; of an unreadable text that is a template, only that it is one."""
    found = list(parse_each(text, source))
    if all(isinstance(each, Document) for each in found):
        return found
    try:
        template = unrendered_template(decoded(text, source), source)
    except ManifestError:
        template = None
    return found if template is None else [template]
