"""Answers the binder's calls about pods from the manifests of a folder, as an API server would.

Invariant: of two bindings of one pod only one is written, since a binding names the text of the pod that was read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from kube.api.calls import Answer
from kube.manifests.bound_text import Binding, with_binding
from kube.manifests.documents import Document, ManifestError, parse, to_json
from kube.manifests.encoding import decoded
from kube.manifests.gather import stored_pod
from kube.manifests.manifest_files import read_bytes
from serving.shared_folder import replace_file

_PATH: Final = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+)")

PodDocuments = Mapping[tuple[str, str], Document]
"""Pods by namespace and name."""


class FolderPods:
    """Implements PodCalls; `known` are the pods as they were read last."""

    def __init__(self) -> None:
        self.known: PodDocuments = {}

    async def get(self, path: str) -> Answer:
        document = self._document(path)
        return _gone(path) if document is None else Answer(HTTPStatus.OK, as_stored(document))

    async def post(self, path: str, body: bytes) -> Answer:
        """Writes a Binding; the caller holds the lock of the folder."""
        document = self._document(path)
        if document is None:
            return _gone(path)
        return await asyncio.to_thread(_bind, document, msgspec.json.decode(body))

    async def patch(self, path: str, _body: bytes) -> Answer:
        """Refuses a fence: every earlier binding has ended, since the caller holds the lock."""
        return _status(HTTPStatus.CONFLICT, f"{path} is in a folder, where nothing is fenced")

    def _document(self, path: str) -> Document | None:
        found = _PATH.match(path)
        return self.known.get((unquote(found["namespace"]), unquote(found["name"]))) if found else None


def as_stored(document: Document) -> bytes:
    """Returns a pod as JSON, with a hash of its contents as its version."""
    obj = stored_pod(document.obj)
    version = f"sha256:{hashlib.sha256(to_json(document.obj)).hexdigest()}"
    return to_json({**obj, "metadata": {**obj["metadata"], "resourceVersion": version}})


def _bind(document: Document, wanted: Mapping[str, Any]) -> Answer:
    metadata = wanted["metadata"]
    stored = json.loads(as_stored(document))["metadata"]
    if any(metadata[key] != stored[key] for key in ("uid", "resourceVersion")):
        return _status(HTTPStatus.CONFLICT, f"{document.source_file}:{document.line}: the pod has changed")
    try:
        _write(document, Binding(wanted["target"]["name"], metadata["annotations"]))
    except (ManifestError, OSError) as error:
        return _status(HTTPStatus.FORBIDDEN, str(error))
    return _status(HTTPStatus.CREATED, "")


def _write(document: Document, binding: Binding) -> None:
    """Writes the binding into the file of the pod; a link to a file stays a link."""
    before = read_bytes(Path(document.source_file))
    text = decoded(before, document.source_file)
    if text.encode() != before:
        raise document.refused("the file is no UTF-8 without a byte order mark", "save it as UTF-8")
    if document.obj not in [each.obj for each in parse(text, document.source_file)]:
        raise document.refused("another program has just changed this pod", "bind it again")
    after = with_binding(text, document, binding).encode()
    place = Path(document.source_file).resolve()
    replace_file(place, after, mode=place.stat().st_mode & 0o7777)


def _gone(path: str) -> Answer:
    return _status(HTTPStatus.NOT_FOUND, f"{path} is in no manifest of the folder")


def _status(code: HTTPStatus, message: str) -> Answer:
    return Answer(code, msgspec.json.encode({"kind": "Status", "message": message}))
