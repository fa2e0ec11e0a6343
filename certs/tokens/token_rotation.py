"""Keeps the Secret of caller tokens: one pass reads, decides by `token_plan`, and writes the version that was read."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from certs import objects
from certs.chains import ObjectPath
from certs.objects import Object
from certs.store import Store, StoreError
from certs.tokens.token_plan import IN_AN_INSTALLATION, HeldTokens, TokenRules, TokenStep, plan_tokens
from halfcard import names
from halfcard.caller_tokens import read_tokens, written_tokens
from serving.log import Log, utc_now

TOKENS: Final = "tokens"
_BYTES: Final = 32
_MOST_STEPS: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def callers_secret(namespace: str) -> ObjectPath:
    return ObjectPath(f"/api/v1/namespaces/{namespace}/secrets", names.ADMISSION_CALLERS)


@dataclass(frozen=True, slots=True)
class TokenRotation:
    """No token is ever logged."""

    store: Store
    place: ObjectPath
    log: Log
    rules: TokenRules = IN_AN_INSTALLATION
    clock: Callable[[], datetime] = utc_now

    async def reconcile(self, registered: frozenset[str]) -> HeldTokens:
        """Carries out steps until none is left; `registered` was read before the Secret."""
        for _ in range(_MOST_STEPS):
            secret = await self.store.read(self.place)
            held, now = _held(secret, registered), self.clock()
            step = plan_tokens(held, self.rules, now=now, fresh=secrets.token_hex(_BYTES))
            if step is None:
                return held
            if await self._write(secret, step, now):
                self.log.event("caller tokens written", accepted=len(step.tokens), reason=step.reason)
        raise StoreError(f"secret {self.place.name}: another program writes it faster than it can be read")

    async def _write(self, secret: Object | None, step: TokenStep, now: datetime) -> bool:
        item = secret or objects.new_secret(self.place, "Opaque")
        item = objects.with_entries(item, {TOKENS: written_tokens(step.tokens)})
        since = None if step.since is None else objects.written(step.since)
        item = objects.with_annotation(item, names.CALLERS_SINCE, since)
        if step.is_new:
            item = objects.with_annotation(item, names.CALLERS_MADE, objects.written(now))
        return await (self.store.create if secret is None else self.store.replace)(self.place, item)


def _held(secret: Object | None, registered: frozenset[str]) -> HeldTokens:
    """Reads the Secret; a token without a valid time counts as old."""
    made = objects.time_of(secret, names.CALLERS_MADE) or _EPOCH
    since = objects.time_of(secret, names.CALLERS_SINCE)
    return HeldTokens(read_tokens(objects.entry(secret, TOKENS) or b""), made, since, registered)
