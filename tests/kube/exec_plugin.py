"""A program that logs in, for the field `exec` of a kubeconfig."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

V1: Final = "client.authentication.k8s.io/v1"


class Plugin:
    """A program that notes each run, and prints the status in the file `status` with RUN replaced by its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "login"
        self.prints({"token": "token-RUN"})
        self.does('sed "s/RUN/$(wc -l < runs | tr -d " ")/" status')

    def does(self, script: str) -> None:
        self.path.write_text(f'#!/bin/sh\ncd "{self.folder}"\necho "$0 $*" >> runs\n{script}\n')
        self.path.chmod(0o700)

    def prints(self, status: dict[str, Any]) -> None:
        document = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        (self.folder / "status").write_text(json.dumps(document))

    def runs(self) -> int:
        return len((self.folder / "runs").read_text().splitlines())
