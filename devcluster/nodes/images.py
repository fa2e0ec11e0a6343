"""Makes container images when they are needed: there is no registry, and nothing is pulled.

An archive as `docker save` writes it, with one layer: a static busybox, shared by all images; or one static program.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..build.binaries import kubernetes_module, kubernetes_version, program_path
from ..errors import CannotStartError

BUSYBOX = "halfcard.test/busybox:1"
PAUSE = "halfcard.test/pause:1"
SCHEDULER = "registry.k8s.io/kube-scheduler"

_COMMANDS: Mapping[str, Sequence[str]] = {BUSYBOX: ["sh"], PAUSE: ["sleep", "infinity"]}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _link(archive: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)


def _static_busybox() -> Path:
    found = shutil.which("busybox")
    # A dynamic program names the loader that it needs; an image has none.
    if found is None or b"/ld-linux" in Path(found).read_bytes():
        raise CannotStartError("no static busybox: run `apt-get install busybox-static`.")
    return Path(found)


def _layer() -> bytes:
    busybox = _static_busybox()
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        _add(archive, "bin/busybox", busybox.read_bytes(), mode=0o755)
        for applet in set(listing.split()) - {"busybox"}:
            _link(archive, f"bin/{applet}", "busybox")
        _add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    return content.getvalue()


def _program_layer(program: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        _add(archive, f"bin/{program.name}", program.read_bytes(), mode=0o755)
    return content.getvalue()


def _config(command: Sequence[str], diff_id: str) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }


def write_images(path: Path) -> None:
    _write(path, _layer(), _COMMANDS)


def write_scheduler_image(path: Path) -> None:
    """Writes kube-scheduler as Kubernetes publishes it: the program alone, under the name with its version."""
    image = f"{SCHEDULER}:{kubernetes_version(kubernetes_module())}"
    _write(path, _program_layer(program_path("kube-scheduler")), {image: ["kube-scheduler"]})


def _write(path: Path, layer: bytes, commands: Mapping[str, Sequence[str]]) -> None:
    diff_id = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    manifest = []
    with tarfile.open(path, mode="w") as archive:
        _add(archive, "layer.tar", layer)
        for number, (image, command) in enumerate(commands.items()):
            _add(archive, f"{number}.json", json.dumps(_config(command, diff_id)).encode())
            manifest.append({"Config": f"{number}.json", "RepoTags": [image], "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())
