"""Two ways to call the API server as a user: kubectl, as people do, and one plain HTTP request, which is faster."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..build.binaries import program_path
from ..objects import Object
from .users import User

_REQUEST_TIMEOUT_S = 30.0
_COMMAND_TIMEOUT_S = 120.0
_APPLY = "application/apply-patch+yaml"  # creates or updates: calling twice is harmless
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Output and exit code of a program that has ended."""

    code: int
    stdout: str
    stderr: str


def run(*command: str, home: Path, stdin: str = "") -> CommandResult:
    """Runs a program with PATH as its whole environment: other variables may name proxies, or another cluster."""
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)},
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def must(self) -> Any:
        """Returns the body of a success; raises an error with the server's message for anything else."""
        if not self.ok:
            raise AssertionError(f"the API server answered {self.status}: {self.body}")
        return self.body


def _decoded(content_type: str, payload: bytes) -> Any:
    return json.loads(payload) if content_type.startswith("application/json") else payload.decode()


@dataclass(frozen=True, slots=True)
class Client:
    """Opens a connection for each request, so that a restarted API server needs no special case."""

    address: str
    port: int
    authority: Path
    home: Path

    def request(
        self,
        user: User,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> ApiResponse:
        context = user.tls(self.authority)
        connection = http.client.HTTPSConnection(self.address, self.port, timeout=_REQUEST_TIMEOUT_S, context=context)
        try:
            payload = None if body is None else json.dumps(body)
            headers = {"Content-Type": content_type, "Accept": accept, **user.headers()}
            connection.request(method, path, body=payload, headers=headers)
            answer = connection.getresponse()
            return ApiResponse(answer.status, _decoded(answer.headers.get("Content-Type", ""), answer.read()))
        finally:
            connection.close()

    def apply(self, user: User, collection: str, item: Object) -> Any:
        """Creates or updates an object in a collection, a path such as /api/v1/namespaces/a/services."""
        path = f"{collection}/{item['metadata']['name']}?fieldManager=cluster-harness&force=true"
        return self.request(user, "PATCH", path, item, content_type=_APPLY).must()

    def merge(self, user: User, path: str, change: Object) -> Any:
        return self.request(user, "PATCH", path, change, content_type=_MERGE).must()

    def kubectl(self, user: User, *arguments: str, stdin: str = "") -> CommandResult:
        program = str(program_path("kubectl"))
        return run(program, f"--kubeconfig={user.kubeconfig}", *arguments, home=self.home, stdin=stdin)
