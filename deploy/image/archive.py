"""Writes an image as one file for `ctr images import`, `docker load`, `podman load` and `skopeo copy`.

It is an OCI layout; manifest.json describes it in Docker's own format, too.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .contents import USER
from .layers import Layer, sha256

_NEVER: Final = "1970-01-01T00:00:00Z"
_OCI: Final = "application/vnd.oci.image"


def archive(layers: Sequence[Layer], *, name: str, architecture: str, labels: Mapping[str, str]) -> bytes:
    """Writes the archive; runtimes show the image as `name`, such as halfcard:1.0."""
    configuration = _json(_configuration(layers, architecture, labels))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _described(configuration, "config.v1+json"),
            "layers": [_described(each.packed, "layer.v1.tar+gzip") for each in layers],
        }
    )
    index = _described(manifest, "manifest.v1+json") | {
        "platform": {"architecture": architecture, "os": "linux"},
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]},
    }
    blobs = [configuration, manifest, *(each.packed for each in layers)]
    by_docker = {
        "Config": _blob(configuration),
        "RepoTags": [name],
        "Layers": [_blob(each.packed) for each in layers],
    }
    return _tar(
        {
            **{_blob(content): content for content in blobs},
            "index.json": _json({"schemaVersion": 2, "manifests": [index]}),
            "manifest.json": _json([by_docker]),
            "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        }
    )


def digest(packed: bytes) -> str:
    """The digest of the image in a registry."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        index = opened.extractfile("index.json")
        assert index is not None
        return str(json.load(index)["manifests"][0]["digest"])


def _configuration(layers: Sequence[Layer], architecture: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "created": _NEVER,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/bin", "PYTHONDONTWRITEBYTECODE=1"],
            "Entrypoint": ["python", "-m"],
            "Cmd": ["cli", "--help"],
            "WorkingDir": "/",
            "Labels": dict(labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
    }


def _described(content: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}", "digest": sha256(content), "size": len(content)}


def _blob(content: bytes) -> str:
    return f"blobs/sha256/{sha256(content).partition(':')[2]}"


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _tar(files: Mapping[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as opened:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            opened.addfile(entry, io.BytesIO(content))
    return whole.getvalue()
