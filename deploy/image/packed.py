"""Reads an image from its archive like an engine: later layers over earlier ones."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Final

STATUS: Final = "var/lib/dpkg/status.d/*"
METADATA: Final = "*.dist-info/METADATA"


@dataclass(frozen=True, slots=True)
class Packed:
    """The contents of an image.

    Attributes:
        configuration: the configuration that engines read, with labels and architecture.
        descriptions: the files that describe installed packages, by path.
    """

    digest: str
    name: str
    configuration: Mapping[str, Any]
    descriptions: Mapping[str, str]


def read(archive: bytes) -> Packed:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        (described,) = json.loads(_content(opened, "index.json"))["manifests"]
        manifest = json.loads(_content(opened, _blob(described["digest"])))
        configuration = json.loads(_content(opened, _blob(manifest["config"]["digest"])))
        layers = [_content(opened, _blob(each["digest"])) for each in manifest["layers"]]
    descriptions = {path: text for layer in layers for path, text in _descriptions(layer)}
    return Packed(
        described["digest"], described["annotations"]["io.containerd.image.name"], configuration, descriptions
    )


def _descriptions(layer: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as opened:
        for each in opened:
            if any(fnmatch(each.name, pattern) for pattern in (STATUS, METADATA)):
                yield each.name, _content(opened, each.name).decode()


def _content(opened: tarfile.TarFile, path: str) -> bytes:
    stream = opened.extractfile(path)
    assert stream is not None, path
    return stream.read()


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
