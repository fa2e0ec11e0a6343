"""The part of an API server's wire that reading nodes and pods once needs: two lists, a page at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.kube.listening import listening

PAGE = 2


@contextmanager
def kubeconfig_of(folder: Path, lists: Mapping[str, Sequence[Any]]) -> Iterator[Path]:
    """A server that has the objects of each path, and the file that leads there; other paths are forbidden."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            begin = int(parse_qs(url.query).get("continue", ["0"])[0])
            items = lists.get(url.path)
            if items is None:
                return self._answer(403, {"kind": "Status", "message": f"{url.path} is forbidden", "code": 403})
            following = str(begin + PAGE) if begin + PAGE < len(items) else ""
            metadata = {"resourceVersion": "1", "continue": following}
            return self._answer(200, {"metadata": metadata, "items": items[begin : begin + PAGE]})

        def _answer(self, code: int, answer: Any) -> None:
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stays quiet."""

    with listening(Handler) as port:
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config(f"http://127.0.0.1:{port}")))
        yield file


def config(server: str) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    }
