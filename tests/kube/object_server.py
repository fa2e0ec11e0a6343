"""The part of an API server that single calls need: objects with versions, and calls that get lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal, NamedTuple

from .listening import listening

Object = dict[str, Any]
STATUS = "/status"
Fault = Literal["silent", "unheard", "unanswered", "unended", "refused"]


class Call(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


class ObjectServer:
    """Stores objects by path; each fault that a test sets affects one call.

    "silent": no effect and no answer; "unheard": no effect, and the connection ends; "unanswered": written without an
    answer; "unended": half an answer; "refused": a 500.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.closes = False
        self.port = 0
        self._version = 0
        self._lock = threading.Lock()

    def put(self, path: str, item: Object) -> None:
        """Creates or changes an object as another program."""
        with self._lock:
            self._store(path, item)

    def carry_out(self, call: Call) -> tuple[int, Object]:
        sent = json.loads(call.body) if call.body else {}
        path = call.path.removesuffix(STATUS)
        with self._lock:
            return self._carry_out(call.method, path, _of_subresource(sent, is_status=path != call.path))

    def _carry_out(self, method: str, path: str, sent: Object) -> tuple[int, Object]:
        if method == "POST":
            path = f"{path}/{sent['metadata']['name']}"
            return refusal(409, "already exists") if path in self.objects else (201, self._store(path, sent))
        known = self.objects.get(path)
        if known is None:
            return refusal(404, "not found")
        if method == "GET":
            return 200, known
        if method == "DELETE":
            return 200, self.objects.pop(path)
        if sent.get("metadata", {}).get("resourceVersion", "") not in ("", known["metadata"]["resourceVersion"]):
            return refusal(409, "the object has been modified")
        after = sent if method == "PUT" else merged(known, sent)
        return 200, known if after == known else self._store(path, after)

    def _store(self, path: str, item: Object) -> Object:
        self._version += 1
        stored = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}
        self.objects[path] = stored
        return stored


def _of_subresource(sent: Object, *, is_status: bool) -> Object:
    """Writes only the status of an object."""
    return {key: value for key, value in sent.items() if key != "status" or is_status}


def merged(known: Any, patch: Any) -> Any:
    """Applies both kinds of merge patch as far as Halfcard uses them: only conditions are lists."""
    if isinstance(patch, list) and isinstance(known, list):
        fresh = {each["type"]: each for each in patch}
        return [*({each["type"]: each for each in known} | fresh).values()]
    if not isinstance(patch, dict):
        return patch
    there = known if isinstance(known, dict) else {}
    after = there | {key: merged(there.get(key), value) for key, value in patch.items()}
    return {key: value for key, value in after.items() if value is not None}


def refusal(code: int, message: str) -> tuple[int, Object]:
    return code, {"kind": "Status", "code": code, "message": message}


@contextmanager
def serving_objects() -> Iterator[ObjectServer]:
    state = ObjectServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            call = Call(self.command, self.path, dict(self.headers), body, self.client_address[1])
            state.calls.append(call)
            fault = state.faults.pop(0) if state.faults else None
            if fault == "silent":
                self.rfile.read(1)
            if fault in ("silent", "unheard"):
                self.close_connection = True
                return
            status, answer = refusal(500, "no leader") if fault == "refused" else state.carry_out(call)
            if fault == "unanswered":
                self.close_connection = True
                return
            self._answer(status, json.dumps(answer).encode(), complete=fault is None or fault == "refused")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815  (http.server's names)

        def _answer(self, status: int, body: bytes, *, complete: bool) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if state.closes:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body if complete else body[:5])
            self.close_connection = state.closes or not complete

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with listening(Handler) as state.port:
        yield state
