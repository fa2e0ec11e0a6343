"""The part of an API server that a list and watch of nodes needs, with the faults of a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kube.driver_watches import COLLECTIONS
from tests.builders import device_class

from .listening import listening

Object = dict[str, Any]
CLASSES, SLICES = COLLECTIONS
PAGE = 3
"""Smaller than the requested limit, as a server may choose."""


def node(name: str, units: int, heartbeat: int = 0) -> Object:
    capacity = {"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": str(units)}
    return {"metadata": {"name": name}, "status": {"capacity": capacity, "heartbeat": heartbeat}}


class NodeServer:
    """Stores nodes and their history; attributes that a test sets apply to the next call."""

    def __init__(self) -> None:
        self.nodes: dict[str, Object] = {}
        self.history: list[Object] = []
        self.forgotten = 0
        self.refusal: tuple[int, str] | None = None
        self.calls: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.changed = threading.Condition()
        self.generation = 0
        self.port = 0

    @property
    def version(self) -> int:
        return len(self.history)

    def put(self, item: Object) -> None:
        kind = "MODIFIED" if item["metadata"]["name"] in self.nodes else "ADDED"
        with self.changed:
            self.nodes[item["metadata"]["name"]] = item
            self._record(kind, item)

    def delete(self, name: str) -> None:
        with self.changed:
            self._record("DELETED", self.nodes.pop(name))

    def bookmark(self) -> None:
        with self.changed:
            self._record("BOOKMARK", {"metadata": {}})

    def garble(self) -> None:
        with self.changed:
            self.history.append({"type": 7})
            self.changed.notify_all()

    def _record(self, kind: str, item: Object) -> None:
        version = str(self.version + 1)
        metadata = {**item["metadata"], "resourceVersion": version}
        self.history.append({"type": kind, "object": {**item, "metadata": metadata}})
        self.changed.notify_all()

    def cut(self) -> None:
        """Interrupts all watches."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def lists(self) -> int:
        return sum("watch" not in call and "continue" not in call for call in self.calls)

    def page(self, query: dict[str, str]) -> Object:
        begin = int(query.get("continue", "0"))
        with self.changed:
            everything = [self.nodes[name] for name in sorted(self.nodes)]
            metadata: Object = {"resourceVersion": str(self.version)}
        if begin + PAGE < len(everything):
            metadata["continue"] = str(begin + PAGE)
        return {"kind": "NodeList", "metadata": metadata, "items": everything[begin : begin + PAGE] or None}

    def stream(self, query: dict[str, str], generation: int) -> Iterator[Object]:
        """Waits until the watches of this generation are interrupted."""
        seen = int(query["resourceVersion"])
        if seen < self.forgotten:
            refusal = {"kind": "Status", "code": 410, "message": "too old resource version"}
            yield {"type": "ERROR", "object": refusal}
            return
        while True:
            with self.changed:
                while self.version <= seen and self.generation == generation:
                    self.changed.wait()
                if self.generation > generation:
                    return
                fresh, seen = self.history[seen:], self.version
            yield from fresh


def driver_servers() -> dict[str, NodeServer]:
    """The collections that a driver of Dynamic Resource Allocation fills; a class gives it `nvidia.com/gpu`."""
    found = {CLASSES: NodeServer(), SLICES: NodeServer()}
    found[CLASSES].put(device_class())
    return found


@contextmanager
def serving(only: str = "", also: Mapping[str, NodeServer] = {}) -> Iterator[NodeServer]:
    """`only` is the path of the collection with these objects; `also` are other ones, and all others are empty."""
    everything, nothing = NodeServer(), NodeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path)
            state = also.get(path.path) or (everything if path.path == (only or path.path) else nothing)
            generation = state.generation
            query = {key: values[0] for key, values in parse_qs(path.query).items()}
            state.calls.append(query)
            state.headers.append(dict(self.headers))
            if state.refusal is not None:
                code, message = state.refusal
                self._answer(code, json.dumps({"kind": "Status", "message": message, "code": code}).encode())
            elif "watch" in query:
                self._stream(state, query, generation)
            else:
                self._answer(200, json.dumps(state.page(query)).encode())

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, state: NodeServer, query: dict[str, str], generation: int) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            for event in state.stream(query, generation):
                line = json.dumps(event).encode() + b"\n"
                for part in (line[:7], line[7:]):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with listening(Handler) as everything.port:
        try:
            yield everything
        finally:
            everything.cut()
            nothing.cut()
