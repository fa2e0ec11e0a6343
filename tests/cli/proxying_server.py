"""The part of an API server's wire that `halfcard top` needs: the agents' pods, or nodes, and the way to them."""

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
PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_TOKENS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/halfcard-top/token"
_TOKEN: Final = "of-halfcard-top"
HANGS: Final = "hangs"
REFUSES: Final = "refuses"


def node(name: str, *, has_agent: bool = True) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {names.INVENTORY: "[]"} if has_agent else {}}}


def agent(on: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": names.AGENT}
    return {"metadata": {"name": f"agent-of-{on}", "labels": labels}, "spec": {"nodeName": on}}


OTHER_POD: Final = {"metadata": {"name": "other", "labels": {"app.kubernetes.io/name": "x"}}, "spec": {"nodeName": "n"}}


@contextmanager
def cluster_of(folder: Path, agents: Mapping[str, str | bytes | None], *, in_pods: bool = True) -> Iterator[Path]:
    """By node: what its agent answers, or how it does not; None is a node without one. Yields a kubeconfig.

    Nodes can be listed only where no agent runs in a pod.
    """
    ended = threading.Event()
    way = f"{PODS}/https:agent-of-" if in_pods else f"{NODES}/https:"
    answers = {f"{way}{name}:5679/proxy/usage?output=json": answer for name, answer in agents.items() if answer}
    pods = [agent(name) for name, answer in agents.items() if answer is not None] if in_pods else []
    nodes = [node(name, has_agent=answer is not None) for name, answer in agents.items()]
    lists = {PODS: [OTHER_POD, *pods], **({} if pods else {NODES: nodes})}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if (items := lists.get(self.path.partition("?")[0])) is not None:
                return self._answer(200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())
            found = answers.get(self.path) if self.headers[names.TOKEN_HEADER] == _TOKEN else b"no token"
            if found == HANGS:
                ended.wait(30)
            if isinstance(found, bytes):
                return self._answer(200, found)
            message = "error trying to reach service: dial tcp 10.0.0.9:5679: connect: connection refused"
            return self._answer(503, json.dumps({"kind": "Status", "message": message, "code": 503}).encode())

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, request["spec"]) == (_TOKENS, {"expirationSeconds": 600})
            self._answer(201, json.dumps({"status": {"token": _TOKEN}}).encode())

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
