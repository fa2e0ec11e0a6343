"""One pass over a chain of certificates in the API server: read, decide, write, until nothing is left to do.

Invariant: derived objects are read before their source and replaced only in the version that was read. So a bundle or a
leaf is never replaced by an older one, whatever other writers do, and wherever a process is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, assert_never

from certs import objects
from certs.authority import KeyPair, make_authority, make_leaf
from certs.certificate_checks import pem
from certs.chain_state import ChainState, object_paths
from certs.chains import Chain, ObjectPath
from certs.objects import CA_CRT, CA_KEY, TLS_CRT, TLS_KEY, Object, entry
from certs.steps import (
    Keep,
    Note,
    Publish,
    Refuse,
    RenewAuthority,
    RenewLeaf,
    Trust,
)
from certs.store import Store
from halfcard import names

_MOST_STEPS: Final = 40
"""The longest way has about ten; the others allow for writes of other programs."""

_OPAQUE: Final = "Opaque"
_TLS: Final = "kubernetes.io/tls"


Change = RenewAuthority | Trust | Note | RenewLeaf | Publish


class CompletedStep(NamedTuple):
    """A step that was carried out, and on which object."""

    step: Change
    place: ObjectPath


class ReconcileResult(NamedTuple):
    """`last` says why no step follows; None where other programs wrote faster than this could read."""

    state: ChainState
    last: Keep | Refuse | None


async def read_chain(store: Store, chain: Chain) -> ChainState:
    return ChainState(chain, {place: await store.read(place) for place in object_paths(chain)})


async def reconcile(
    store: Store, chain: Chain, clock: Callable[[], datetime], did: Callable[[CompletedStep], None] = lambda _: None
) -> ReconcileResult:
    """Carries out steps until none is left; after a StoreError or NoAnswerError the next pass continues."""
    for _ in range(_MOST_STEPS):
        seen = await read_chain(store, chain)
        now = clock()
        step = seen.plan(now)
        if isinstance(step, Keep | Refuse):
            return ReconcileResult(seen, step)
        if await _carry_out(store, seen, step, now):
            did(CompletedStep(step, _place(seen, step)))
    return ReconcileResult(seen, None)


def _place(seen: ChainState, step: Change) -> ObjectPath:
    match step:
        case RenewLeaf():
            return seen.chain.leaves[step.leaf]
        case Publish():
            return seen.copies[step.copy]
        case _:
            return seen.chain.authority


async def _carry_out(store: Store, seen: ChainState, step: Change, now: datetime) -> bool:
    place = _place(seen, step)
    match step:
        case RenewAuthority():
            made = make_authority(seen.chain.rules, now=now)
            bundle = made.certificate + pem(step.still_trusted)
            return await _write_authority(store, seen, {CA_CRT: bundle, CA_KEY: made.key})
        case Trust():
            return await _write_authority(store, seen, {CA_CRT: pem(step.authorities)})
        case Note():
            since = None if step.known_since is None else objects.written(step.known_since)
            secret = objects.with_annotation(_secret(seen, place, _OPAQUE), names.KNOWN_SINCE, since)
            return await _write(store, seen, place, secret)
        case RenewLeaf():
            return await _write(store, seen, place, _with_new_leaf(seen, step.leaf, now))
        case Publish():
            return await _publish(store, seen, place)
        case _:
            assert_never(step)


async def _write_authority(store: Store, seen: ChainState, entries: Mapping[str, bytes]) -> bool:
    """Writes a new CA; the notes about the previous bundle do not apply to it."""
    secret = objects.with_entries(_secret(seen, seen.chain.authority, _OPAQUE), entries)
    return await _write(store, seen, seen.chain.authority, objects.with_annotation(secret, names.KNOWN_SINCE, None))


def _with_new_leaf(seen: ChainState, leaf: int, now: datetime) -> Object:
    held = seen.contents()
    assert held.ca_crt is not None  # noqa: S101  (the plan renews a leaf only from a CA that is there)
    assert held.ca_key is not None  # noqa: S101  (as above)
    made = make_leaf(KeyPair(held.ca_crt, held.ca_key), seen.chain.rules.leaves[leaf], now=now)
    entries = {TLS_CRT: made.certificate, TLS_KEY: made.key, CA_CRT: held.ca_crt}
    return objects.with_entries(_secret(seen, seen.chain.leaves[leaf], _TLS), entries)


async def _publish(store: Store, seen: ChainState, place: ObjectPath) -> bool:
    item, bundle = seen.items[place], entry(seen.items[seen.chain.authority], CA_CRT)
    if item is None or bundle is None:
        raise AssertionError(f"{place}: no object to publish to; this is a bug, please report it")
    if place in seen.chain.configurations:
        return await store.patch(place, objects.bundle_patch(item, bundle))
    return await store.replace(place, objects.with_entries(item, {CA_CRT: bundle}))


def _secret(seen: ChainState, place: ObjectPath, kind: str) -> Object:
    return seen.items[place] or objects.new_secret(place, kind)


async def _write(store: Store, seen: ChainState, place: ObjectPath, secret: Object) -> bool:
    is_new = seen.items[place] is None
    return await (store.create(place, secret) if is_new else store.replace(place, secret))
