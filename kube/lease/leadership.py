"""Leadership by a Lease: one of several replicas decides, and the others know its address.

Invariant: `candidate` decides; this module only reads, writes and waits. An elected replica first takes over, and
decides only after that.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.problems import printable

from ..api.calls import Answer, ApiCalls, NoAnswerError
from .candidate import Candidate, LeaseAction, LeaseTimings
from .lease_object import Object, new_lease, read_lease, released_lease, renewed_lease

_CALL_S: Final = 3.0
_RELEASE_S: Final = 2.0
_CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)


class _LeaseError(Exception):
    """The API server refused a call, and not because of the version."""


class Leadership:
    """One candidate. `instance` is a readable name, made unique here; other replicas reach the candidate at `address`.

    The Lease carries `notes` as annotations next to the address; the leader collects them at each renewal.

    Attributes:
        trouble: why the Lease cannot be read or written, or why the takeover failed, in one sentence.
    """

    def __init__(
        self,
        calls: ApiCalls,
        *,
        namespace: str,
        name: str,
        instance: str,
        address: str,
        notes: Callable[[], Mapping[str, str]],
        rules: LeaseTimings = LeaseTimings(),  # noqa: B008  (frozen)
    ) -> None:
        self.trouble: str | None = None
        self._calls = calls
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._address = address
        self._notes = notes
        self._rules = rules
        self._candidate = Candidate(f"{instance}_{secrets.token_hex(8)}", rules)
        self._object: Object = {"metadata": {"name": name, "namespace": namespace}}
        self._takeover: asyncio.Future[None] | None = None

    def may_decide(self) -> bool:
        """Returns whether this replica leads; called before each decision, since leadership expires by itself."""
        return self._took_over() and self._candidate.may_decide(time.monotonic())

    @property
    def leader_address(self) -> str | None:
        """The address of the last known leader, which may be this replica; None if there was none."""
        return self.notes.get(names.LEADER_ADDRESS)

    @property
    def notes(self) -> Mapping[str, str]:
        """All annotations of the Lease as last read, also before any election."""
        return self._object["metadata"].get("annotations") or {}

    async def run(self, elected: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs until it is cancelled, and releases the Lease at the end.

        Args:
            elected: takes over the state of the previous leader; cancelled when the Lease is lost meanwhile.
        """
        try:
            while True:
                await self._round()
                await self._continue_term(elected)
                await asyncio.sleep(self._rules.renew_every_s * random.uniform(0.8, 1.2))  # noqa: S311  (no secret)
        finally:
            await self._resign()

    # The Lease

    async def _round(self) -> None:
        try:
            if self._candidate.must_read:
                await self._read()
            await self._act(self._candidate.decide(time.monotonic()))
            self.trouble = None
        except (NoAnswerError, _LeaseError, msgspec.MsgspecError) as error:
            self.trouble = printable(f"leadership is uncertain: {error}")

    async def _read(self) -> None:
        answer = await self._calls.get(f"{self._collection}/{self._name}", timeout_s=_CALL_S)
        if answer.status == HTTPStatus.NOT_FOUND:
            self._update(self._candidate.with_lease(None, time.monotonic()))
            return
        self._object = _accepted(answer, "reading the Lease")
        self._update(self._candidate.with_lease(read_lease(self._object), time.monotonic()))

    async def _act(self, step: LeaseAction) -> None:
        if step is LeaseAction.CREATE:
            await self._write(self._calls.post, self._collection, new_lease(self._object))
        elif step is not LeaseAction.WAIT:
            notes = {names.LEADER_ADDRESS: self._address, **(self._notes() if self._took_over() else {})}
            await self._put(renewed_lease(self._object, self._candidate.identity, self._rules.duration_s, notes))

    async def _put(self, lease: Object) -> None:
        await self._write(self._calls.put, f"{self._collection}/{self._name}", lease)

    async def _write(self, send: Callable[..., Awaitable[Answer]], path: str, lease: Object) -> None:
        self._update(self._candidate.with_pending_write())
        sent = time.monotonic()
        answer = await send(path, msgspec.json.encode(lease), timeout_s=_CALL_S)
        if answer.status in _CONFLICTS:
            self._update(self._candidate.with_conflict())
            return
        self._object = _accepted(answer, "writing the Lease")
        self._update(self._candidate.with_written(read_lease(self._object), sent, time.monotonic()))

    # A term: from taking the Lease to losing it

    def _update(self, candidate: Candidate) -> None:
        """Cancels the takeover when the term ends, also when the next term begins in the same round."""
        self._candidate = candidate
        if not candidate.is_holder:
            self._forget_takeover()

    def _forget_takeover(self) -> None:
        if self._takeover is not None:
            self._takeover.cancel()
            self._takeover = None

    def _took_over(self) -> bool:
        return self._takeover is not None and _succeeded(self._takeover)

    async def _continue_term(self, elected: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if not self._candidate.is_holder:
            return
        if self._takeover is None:
            self._takeover = asyncio.create_task(elected(), name="take over")
        elif self._takeover.done() and not self._took_over():
            self.trouble = printable(f"the takeover failed: {_failure(self._takeover)}")
            await self._resign()
            await asyncio.sleep(self._rules.retry_after_s)

    async def _resign(self) -> None:
        """Tries to release the Lease; a Lease that is not released expires by itself."""
        self._forget_takeover()
        with suppress(TimeoutError, NoAnswerError, _LeaseError, msgspec.MsgspecError):
            async with asyncio.timeout(_RELEASE_S):
                if self._candidate.is_holder and self._candidate.must_read:
                    await self._read()
                if self._candidate.is_holder:
                    await self._put(released_lease(self._object))


def _succeeded(task: asyncio.Future[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _failure(task: asyncio.Future[None]) -> str:
    return "it was cancelled" if task.cancelled() else repr(task.exception())


def _accepted(answer: Answer, call: str) -> Object:
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        message = answer.message() or "(no message)"
        raise _LeaseError(f"the API server answered {answer.status} to {call}: {message}")
    return msgspec.json.decode(answer.body, type=Object)
