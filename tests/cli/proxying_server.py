"""The part of an API server's wire that `halfcard top` needs: the nodes, and the way to what listens on them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from halfcard import names
from tests.kube.listening import listening

from .list_server import config

NODES: Final = "/api/v1/nodes"
HANGS: Final = "hangs"
REFUSES: Final = "refuses"


def node(name: str, *, has_agent: bool = True) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {names.INVENTORY: "[]"} if has_agent else {}}}


@contextmanager
def cluster_of(folder: Path, agents: Mapping[str, str | bytes | None]) -> Iterator[Path]:
    """By node: what its agent answers, or how it does not; None is a node without one. Yields a kubeconfig."""
    ended = threading.Event()
    answers = {f"{NODES}/{name}:5678/proxy/usage?output=json": answer for name, answer in agents.items() if answer}
    nodes = [node(name, has_agent=answer is not None) for name, answer in agents.items()]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.startswith(f"{NODES}?"):
                return self._answer(200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": nodes}).encode())
            found = answers.get(self.path)
            if found == HANGS:
                ended.wait(30)
            if isinstance(found, bytes):
                return self._answer(200, found)
            message = "error trying to reach service: dial tcp 10.0.0.9:5678: connect: connection refused"
            return self._answer(503, json.dumps({"kind": "Status", "message": message, "code": 503}).encode())

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stays quiet."""

    with listening(Handler) as port:
        try:
            file = folder / "kubeconfig"
            file.write_text(json.dumps(config(f"http://127.0.0.1:{port}")))
            yield file
        finally:
            ended.set()
