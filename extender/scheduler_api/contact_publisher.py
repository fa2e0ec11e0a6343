"""Publishes what replicas see of schedulers on one Lease, where `halfcard doctor` reads it.

Every replica publishes: a scheduler keeps its connection to one of them. It is not the leader's Lease, which only its
holder may write. A replica writes at most once a minute what only repeats, and nothing while no scheduler calls.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls, NoAnswerError

from .contact_log import ContactLog
from .scheduler_contact import NO_CONTACT, SchedulerContact, contact_on, is_news, joined, write_contact

_LOOKS_EVERY_S: Final = 5.0


class ContactPublisher:
    """Attributes:
    trouble: why the Lease cannot be read or written, in one sentence.
    """

    def __init__(self, calls: ApiCalls, namespace: str, log: ContactLog) -> None:
        self.trouble: str | None = None
        self._calls = calls
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{names.SCHEDULER_CONTACT}"
        self._log = log
        self._published = NO_CONTACT

    async def run(self) -> None:
        while True:
            await self.publish()
            await asyncio.sleep(_LOOKS_EVERY_S)

    async def publish(self) -> None:
        """Joins the Lease with what this replica has seen. After a conflict, the next call does it."""
        if not is_news(self._published, joined(self._published, self._log.contact)):
            return
        try:
            await self._join()
        except NoAnswerError as error:
            self.trouble = printable(f"the scheduler's calls are not published: {error}")

    async def _join(self) -> None:
        answer = await self._calls.get(self._path)
        if not self._is_accepted(answer):
            return
        lease = msgspec.json.decode(answer.body)
        self._published = contact_on(lease)
        merged = joined(self._published, self._log.contact)
        if is_news(self._published, merged) and self._is_accepted(await self._put(lease, merged)):
            self._published = merged

    async def _put(self, lease: dict[str, Any], contact: SchedulerContact) -> Answer:
        annotations = {**(lease["metadata"].get("annotations") or {}), names.CONTACT: write_contact(contact)}
        changed = {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}
        return await self._calls.put(self._path, msgspec.json.encode(changed))

    def _is_accepted(self, answer: Answer) -> bool:
        if answer.status == HTTPStatus.OK:
            self.trouble = None
        elif answer.status != HTTPStatus.CONFLICT:
            what = f"the scheduler's calls are not published: {self._path}: {answer.refusal()}"
            self.trouble = printable(f"{what}; apply deploy/chart/halfcard/rbac/extender.yaml")
        return answer.status == HTTPStatus.OK
