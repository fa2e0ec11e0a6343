"""As much of an API server as one look at a cluster needs: objects by path, lists, and pods that are made for show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.kube.listening import JsonHandler, listening

from .list_server import config

Object = Mapping[str, Any]
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def reviewed(denied: Any, wanted: Object) -> tuple[int, Object]:
    """Returns the answer to the question whether a right is granted."""
    if isinstance(denied, str):
        return 403, {"message": denied}
    return 201, {"status": {"allowed": f"{wanted['verb']} {wanted['resource']}" not in denied}}


def is_selected(item: Object, selector: str) -> bool:
    """Returns whether a label has the value, as in `key=a`, or one of the values, as in `key in (a, b)`."""
    if not selector:
        return True
    key, _, values = selector.partition(" in ") if " in " in selector else selector.partition("=")
    labels = item.get("metadata", {}).get("labels") or {}
    return labels.get(key) in values.strip("()").split(", ")


@contextmanager
def api_server(folder: Path, there: Mapping[str, Any], judge: Callable[[Object], tuple[int, str]]) -> Iterator[Path]:
    """The kubeconfig that leads there.

    By path there is an object, the items of a list, any bytes, or the words with which reading it is forbidden; at
    REVIEWS the missing rights, such as `list nodes`. `judge` answers pod creations with a status and a message.
    """

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802  (http.server's name)
            found = there.get(urlsplit(self.path).path)
            if found is None:
                self._refuse(404, "not found")
            elif isinstance(found, bytes):
                self.send_response(200)
                self.send_header("Content-Length", str(len(found)))
                self.end_headers()
                self.wfile.write(found)
            elif isinstance(found, str):
                self._refuse(403, found)
            elif isinstance(found, list | tuple):
                (selector,) = parse_qs(urlsplit(self.path).query).get("labelSelector", [""])
                items = [item for item in found if is_selected(item, selector)]
                self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})
            else:
                self.answer(200, found)

        def do_POST(self) -> None:  # noqa: N802  (as above)
            if urlsplit(self.path).path == REVIEWS:
                self.answer(*reviewed(there.get(REVIEWS, ()), self.asked()["spec"]["resourceAttributes"]))
            else:
                self._refuse(*judge(self.asked()))

        def _refuse(self, status: int, message: str) -> None:
            self.answer(status, {"kind": "Status", "message": message, "code": status})

    with listening(Handler) as port:
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config(f"http://127.0.0.1:{port}")))
        yield file
