"""`python -m tests.deviceplugin.kubelet.generate`: writes the Python of kubelet's messages, of their .proto files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from grpc_tools import protoc

PACKAGE: Final = Path(__file__).parents[3] / "deviceplugin" / "kubelet"


def generated() -> dict[str, bytes]:
    """By the name of the file."""
    with tempfile.TemporaryDirectory() as folder:
        sources = [str(file) for file in sorted(PACKAGE.glob("*.proto"))]
        command = ["protoc", f"-I{PACKAGE}", f"--python_out={folder}", f"--pyi_out={folder}", *sources]
        if protoc.main(command):
            raise SystemExit("the .proto files are not in order; see above")
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def main() -> None:
    for name, content in generated().items():
        (PACKAGE / name).write_bytes(content)


if __name__ == "__main__":
    main()
