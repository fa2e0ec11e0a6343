"""The part of an API server that ledgers need: ConfigMaps with versions, and calls that get lost."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import msgspec

from halfcard.quota.ledger import Ledger
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import ConfigMap, ConfigMapMetadata, WatchedLedger, to_config_map

from .listening import JsonHandler, listening
from .object_server import refusal

Object = dict[str, Any]
Fault = Literal["unheard", "unanswered", "outrun", "held"]

NAMESPACE: Final = "halfcard-system"
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class LedgerServer:
    """Each fault affects one write; None lets one pass.

    "unheard": the connection ends and nothing is written; "unanswered": it is written, and the connection ends;
    "outrun": another program writes first; "held": it waits for `release`, then is written.
    """

    def __init__(self) -> None:
        self.port = 0
        self.calls: list[str] = []
        self.faults: list[Fault | None] = []
        self.held = threading.Event()
        self.release = threading.Event()
        self._maps: dict[str, Object] = {}
        self._history: list[tuple[str, ConfigMap]] = []
        self._version = 100
        self._lock = threading.Lock()

    def put(self, name: str, ledger: Ledger) -> None:
        """Writes a ledger as another program."""
        with self._lock:
            self._store(name, msgspec.to_builtins(to_config_map(ConfigMapMetadata(name), ledger)))

    def put_map(self, name: str, content: ConfigMap) -> None:
        with self._lock:
            self._store(name, msgspec.to_builtins(content))

    def put_text(self, name: str, text: str) -> None:
        with self._lock:
            self._store(name, {"metadata": {"name": name}, "data": {"ledger": text}})

    def drop(self, name: str) -> None:
        with self._lock:
            del self._maps[name]

    def ledger(self, name: str) -> Ledger:
        with self._lock:
            found = WatchedLedger(name, msgspec.convert(self._maps[name], ConfigMap)).read()
        assert found is not None
        return found.ledger

    def seen(self, name: str) -> WatchedLedger:
        """Returns a ledger as a watch delivers it."""
        with self._lock:
            return WatchedLedger(name, msgspec.convert(self._maps[name], ConfigMap))

    def history(self, name: str) -> list[Ledger]:
        """Returns every watch event so far."""
        with self._lock:
            read = [WatchedLedger(name, content).read() for each, content in self._history if each == name]
        return [each.ledger for each in read if each is not None]

    def there(self) -> set[str]:
        with self._lock:
            return set(self._maps)

    def writes(self) -> int:
        return sum(call != "GET" for call in self.calls)

    def carry_out(self, method: str, name: str, body: Object) -> tuple[int, Object]:
        with self._lock:
            known = self._maps.get(name)
            if method == "POST":
                name = body["metadata"]["name"]
                return refusal(409, "it is there") if name in self._maps else (201, self._store(name, body))
            if known is None:
                return refusal(404, f'configmaps "{name}" not found')
            if method == "GET":
                return 200, known
            meant = body["preconditions"] if method == "DELETE" else body["metadata"]
            if meant["resourceVersion"] != known["metadata"]["resourceVersion"]:
                return refusal(409, "the object has been modified")
            if method == "DELETE":
                return 200, self._maps.pop(name)
            return 200, self._store(name, body)

    def touch(self, name: str) -> None:
        with self._lock:
            self._store(name, self._maps[name])

    def _store(self, name: str, found: Object) -> Object:
        self._version += 1
        self._maps[name] = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self._version)}}
        self._history.append((name, msgspec.convert(self._maps[name], ConfigMap)))
        return self._maps[name]


@contextmanager
def serving_ledgers() -> Iterator[LedgerServer]:
    state = LedgerServer()

    class Handler(JsonHandler):
        def _handle(self) -> None:
            body = self.asked()
            name = self.path.removeprefix(PATH).removeprefix("/")
            state.calls.append(self.command)
            fault = state.faults.pop(0) if state.faults and self.command != "GET" else None
            if fault == "unheard":
                self.close_connection = True
                return
            if fault == "held":
                state.held.set()
                state.release.wait(30)
            if fault == "outrun":
                state.touch(name)
            status, answer = state.carry_out(self.command, name, body)
            if fault == "unanswered":
                self.close_connection = True
                return
            self.answer(status, answer)

        do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  (http.server's names)

    with listening(Handler) as port:
        state.port = port
        yield state
        state.release.set()


@asynccontextmanager
async def serving_calls() -> AsyncIterator[tuple[LedgerServer, ApiCalls]]:
    with serving_ledgers() as server:
        calls = ApiCalls(Access("127.0.0.1", server.port))
        try:
            yield server, calls
        finally:
            calls.close()
