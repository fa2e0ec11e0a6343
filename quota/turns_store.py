"""Stores the turns of workloads in a ConfigMap beside the ledgers, so that they outlive the leader.

Invariant: only the leader writes, and a write replaces exactly the version that it has read or written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard import names
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls
from kube.ledger.ledger_store import ConfigMap, ConfigMapMetadata

from .reporting.report_job import ReportJob
from .workload_turns import KeptTurns, WorkloadTurns

_EVERY_S: Final = 1.0
_KEY: Final = "turns"
_MOST_BYTES: Final = 900_000
"""The API server stores no larger ConfigMap than 1 MiB."""

_TURNS: Final = msgspec.json.Decoder(KeptTurns)
_CONFIG_MAP: Final = msgspec.json.Decoder(ConfigMap)


class TurnsStore(ReportJob):
    """Writes the turns a second after they have changed, of the namespaces where pods may have to wait."""

    def __init__(
        self,
        calls: ApiCalls,
        turns: WorkloadTurns,
        may_gate: Callable[[str], bool],
        may_decide: Callable[[], bool],
        namespace: str,
    ) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._calls = calls
        self._turns = turns
        self._may_gate = may_gate
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._path = f"{self._collection}/{names.QUOTA_TURNS}"
        self._version = ""
        self._stored_changes = 0

    async def restore(self) -> None:
        """Takes over what an earlier leader stored. Raises NoAnswerError."""
        found = await self._read()
        if found is None:
            return
        try:
            self._turns.restore(decoded(found))
        except (msgspec.MsgspecError, zlib.error) as error:
            self.trouble = printable(f"ConfigMap {names.QUOTA_TURNS} cannot be read, so rollouts wait anew: {error}")

    async def report(self) -> None:
        if self._turns.changes == self._stored_changes:
            return
        changes, kept = self._turns.changes, self._turns.kept(self._may_gate)
        is_empty = not (self._version or kept.held or kept.left)
        if is_empty or await self._write(encoded(kept, self._version)):
            self._stored_changes = changes

    async def _write(self, content: ConfigMap) -> bool:
        """Returns whether it is stored; after a change by another writer the next try replaces that."""
        body = msgspec.json.encode(content)
        call = self._calls.put(self._path, body) if self._version else self._calls.post(self._collection, body)
        answer = await call
        if answer.status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            await self._read()
            return False
        return self._take(answer) is not None

    async def _read(self) -> ConfigMap | None:
        answer = await self._calls.get(self._path)
        if answer.status == HTTPStatus.NOT_FOUND:
            self._version = ""
            return None
        return self._take(answer)

    def _take(self, answer: Answer) -> ConfigMap | None:
        """Remembers the version of an answer; None where the call was refused."""
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            self.trouble = printable(f"ConfigMap {names.QUOTA_TURNS}: {answer.refusal()}")
            return None
        found = _CONFIG_MAP.decode(answer.body)
        self._version, self.trouble = found.metadata.resource_version, ""
        return found


def encoded(kept: KeptTurns, version: str = "") -> ConfigMap:
    """Compresses the turns; where there are too many, those of pods that took no turn are left out."""
    content = _compressed(kept)
    if len(content) > _MOST_BYTES:
        inherited = {uid: each for uid, each in kept.held.items() if each.member.turn != each.member.created}
        content = _compressed(kept._replace(held=inherited))
    return ConfigMap(ConfigMapMetadata(names.QUOTA_TURNS, version), binary_data={_KEY: content})


def _compressed(kept: KeptTurns) -> bytes:
    return zlib.compress(msgspec.json.encode(kept))


def decoded(found: ConfigMap) -> KeptTurns:
    """Reads stored turns. Raises msgspec.MsgspecError and zlib.error."""
    return _TURNS.decode(zlib.decompress(found.binary_data.get(_KEY, b"")))
