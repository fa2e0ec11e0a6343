"""The part of an API server's wire that binding needs: pods with compare-and-set, Bindings, and calls that get lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import msgspec

from halfcard.pod.stored_pod import StoredPod
from tests.kube.listening import JsonHandler, listening
from tests.kube.object_server import merged, refusal

Object = dict[str, Any]
Fault = Literal["unheard", "unanswered", "refused", "refused but done", "held"]

PODS = "/api/v1/namespaces/team/pods/"


class Call(NamedTuple):
    method: str
    pod: str
    is_binding: bool
    body: Object


class PodServer:
    """Each fault spoils one call.

    "unheard": the connection ends and nothing happens; "unanswered": it happens, and the connection ends; "refused": a
    500; "refused but done": it happens, and a 500; "held": it waits for `release`, then happens.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Object] = {}
        self.calls: list[Call] = []
        self.faults: list[Fault | None] = []
        self.held = threading.Semaphore(0)
        self.release = threading.Event()
        self.port = 0
        self._version = 100
        self._lock = threading.Lock()

    async def somebody_is_held(self) -> None:
        assert await asyncio.to_thread(self.held.acquire, timeout=10), "no call arrived"

    def put(self, pod: Object) -> Object:
        """Stores a pod as another client would."""
        with self._lock:
            return self._store(pod["metadata"]["name"], pod)

    def change(self, name: str, **annotations: str) -> None:
        with self._lock:
            self._store(name, merged(self.pods[name], {"metadata": {"annotations": annotations}}))

    def listed(self) -> list[StoredPod]:
        with self._lock:
            return [msgspec.convert(pod, StoredPod) for pod in self.pods.values()]

    def annotations(self, name: str) -> dict[str, str]:
        return dict(self.pods[name]["metadata"].get("annotations", {}))

    def node(self, name: str) -> str:
        return str(self.pods[name]["spec"].get("nodeName", ""))

    def carry_out(self, call: Call) -> tuple[int, Object]:
        with self._lock:
            known = self.pods.get(call.pod)
            if known is None:
                return refusal(404, f'pods "{call.pod}" not found')
            if call.method == "GET":
                return 200, known
            if not _meets(known["metadata"], call.body["metadata"]):
                return refusal(409, "the UID or resourceVersion in the precondition is another one")
            return self._bind(known, call) if call.is_binding else self._patch(known, call)

    def _bind(self, known: Object, call: Call) -> tuple[int, Object]:
        if known["spec"].get("nodeName"):
            return refusal(409, f"pod {call.pod} is already assigned to node {known['spec']['nodeName']}")
        annotations = call.body["metadata"].get("annotations", {})
        target = {"nodeName": call.body["target"]["name"]}
        self._store(call.pod, merged(known, {"metadata": {"annotations": annotations}, "spec": target}))
        return 201, {"kind": "Status", "code": 201}

    def _patch(self, known: Object, call: Call) -> tuple[int, Object]:
        """One that changes nothing writes nothing."""
        patched = merged(known, call.body)
        return 200, known if patched == known else self._store(call.pod, patched)

    def _store(self, name: str, pod: Object) -> Object:
        self._version += 1
        stored = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(self._version)}}
        self.pods[name] = stored
        return stored


def _meets(known: Object, wanted: Object) -> bool:
    return all(wanted.get(key, known[key]) == known[key] for key in ("uid", "resourceVersion"))


@contextmanager
def serving_pods() -> Iterator[PodServer]:
    state = PodServer()

    class Handler(JsonHandler):
        def _handle(self) -> None:
            body = self.asked()
            name, _, sub = self.path.removeprefix(PODS).partition("/")
            call = Call(self.command, name, sub == "binding", body)
            state.calls.append(call)
            fault = state.faults.pop(0) if state.faults else None
            if fault == "held":
                state.held.release()
                state.release.wait(30)
            if fault == "unheard":
                self.close_connection = True
                return
            status, answer = refusal(500, "etcd: no leader") if fault == "refused" else state.carry_out(call)
            if fault == "unanswered":
                self.close_connection = True
                return
            if fault == "refused but done":
                status, answer = refusal(500, "etcd: request timed out")
            self.answer(status, answer)

        do_GET = do_POST = do_PATCH = _handle  # noqa: N815  (http.server's names)

    with listening(Handler) as state.port:
        try:
            yield state
        finally:
            state.release.set()
