"""Writes an Event for each pod that kubelet rejected: kubelet says what it lacked, and nobody what to do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Final

from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.events import event, once
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from .failed_admissions import FailedAdmission

_REASON: Final = "CardsNotThere"
_MOST_WAITING: Final = 100
_WRITTEN: Final = (HTTPStatus.CREATED, HTTPStatus.CONFLICT)
"""An Event with the pod's name exists already if the agent has restarted since."""


class RejectionEvents:
    """`add` may be called at any time; `run` writes until it is cancelled."""

    def __init__(self, calls: ApiCalls, node: str, log: Log, now: Callable[[], datetime]) -> None:
        self._calls = calls
        self._node = node
        self._log = log
        self._now = now
        self._waiting: deque[FailedAdmission] = deque(maxlen=_MOST_WAITING)
        self._added = asyncio.Event()

    def add(self, failed: FailedAdmission) -> None:
        self._waiting.append(failed)
        self._added.set()

    async def run(self) -> None:
        while True:
            await self._added.wait()
            self._added.clear()
            while self._waiting:
                await self._write(self._waiting.popleft())

    async def _write(self, failed: FailedAdmission) -> None:
        namespace, _, name = failed.pod.partition("/")
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": failed.uid}
        source = {"component": names.AGENT, "host": self._node}
        content = once(_REASON, sentence(failed, self._node), self._now())
        body = event(about, {"name": f"cards-not-there.{failed.uid}"}, source, content)
        try:
            answer = await self._calls.post(path_of_events(namespace), body)
        except NoAnswerError as error:
            self._log.warning("event not written", why=str(error))
            return
        if answer.status not in _WRITTEN:
            self._log.warning("event not written", why=answer.refusal())


def sentence(failed: FailedAdmission, node: str) -> str:
    """Returns the message of the Event."""
    return (
        f"kubelet of node {node} rejected this pod for good ({failed.reason}): {failed.message}; if cards were short,"
        " two schedulers bound pods to the node at once, or no agent ran: let one scheduler serve all pods that request"
        " cards; the pod's controller creates another one, else delete this one and create it again"
    )
