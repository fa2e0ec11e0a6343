"""One look at a chain: what it makes, what it leaves alone, and that it goes on where another one ended."""

from __future__ import annotations

import json
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.authority import KeyPair, make_leaf
from certs.certificate_checks import CLIENT, SERVER, certificates, uses_of
from certs.chains import CONFIGURATIONS, Chain, ObjectPath, chains
from certs.lifetimes import COPIED_LEAF_LIFE, KNOWN_AFTER, LEAF_LIFE, RETIREMENT
from certs.objects import CA_CRT, CA_KEY, TLS_CRT, TLS_KEY, Object, bundles, entry, written
from certs.reconcile import ReconcileResult, reconcile
from certs.steps import Keep, Refuse
from halfcard import names
from tests.certs.handshakes import foreign_certificate, meet

from .memory_store import MemoryStore, finished

START = datetime.now(UTC).replace(microsecond=0)  # the handshakes below go by the real clock
ADMISSION, EXTENDER = chains(names.NAMESPACE)
(LEAF,) = ADMISSION.leaves
SERVER_LEAF, CLIENT_LEAF = EXTENDER.leaves


def kept(store: MemoryStore, chain: Chain = ADMISSION, now: datetime = START) -> ReconcileResult:
    return finished(reconcile(store, chain, lambda: now))


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.register(b"", b"")
    return store


def test_the_first_pass_creates_everything_and_the_second_nothing(store: MemoryStore) -> None:
    looked = kept(store)
    assert looked.last == Keep(f"valid until {START + timedelta(days=90):%FT%TZ}")
    bundle = entry(store.items[ADMISSION.authority], CA_CRT)
    assert {each for place in CONFIGURATIONS for each in bundles(store.items[place])} == {bundle}
    assert entry(store.items[LEAF], CA_CRT) == bundle
    writes = store.writes
    kept(store)
    assert store.writes == writes


def test_a_missing_configuration_is_never_created(store: MemoryStore) -> None:
    for place in CONFIGURATIONS:
        store.delete(place)
    assert isinstance(kept(store).last, Keep)
    assert not set(CONFIGURATIONS) & set(store.items)


def test_fields_of_other_programs_on_secrets_stay(store: MemoryStore) -> None:
    kept(store)
    store.annotate(LEAF, "theirs", "1")
    store.set_entry(LEAF, TLS_CRT, b"garbage")
    kept(store)
    assert store.items[LEAF]["metadata"]["annotations"] == {"theirs": "1"}
    assert certificates(entry(store.items[LEAF], TLS_CRT))


def test_certificates_of_another_issuer_and_their_bundles_are_not_changed(store: MemoryStore) -> None:
    kept(store)
    store.set_entry(LEAF, TLS_CRT, foreign_certificate())
    store.register(b"")
    writes = store.writes
    assert kept(store).last == Refuse("tls.crt was not issued by Halfcard")
    assert store.writes == writes


def test_unmanaged_objects_are_reported(store: MemoryStore) -> None:
    store.register(foreign_certificate(), b"")
    looked = kept(store)
    assert len(looked.state.unmanaged()) == 2
    assert looked.state.unmanaged()[0].startswith("validatingwebhookconfiguration halfcard is not managed: 1 of its")
    assert all(bundles(store.items[place]) for place in CONFIGURATIONS)


def test_the_extender_is_server_and_client_and_the_scheduler_a_client(store: MemoryStore) -> None:
    kept(store, EXTENDER)
    found = [certificates(entry(store.items[place], TLS_CRT))[0] for place in EXTENDER.leaves]
    assert [uses_of(each) for each in found] == [SERVER | CLIENT, CLIENT]
    assert entry(store.items[SERVER_LEAF], CA_CRT) == entry(store.items[CLIENT_LEAF], CA_CRT)


class Side:
    """What one of two has of its Secret, at one moment."""

    def __init__(self, store: MemoryStore, place: ObjectPath, folder: Path) -> None:
        secret = store.items[place]
        self.trust = (entry(secret, CA_CRT) or b"").decode()
        self.pair = folder / f"{secret['metadata']['name']}-{secret['metadata']['resourceVersion']}.pem"
        self.pair.write_bytes((entry(secret, TLS_CRT) or b"") + (entry(secret, TLS_KEY) or b""))

    def context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.load_verify_locations(cadata=self.trust)
        context.load_cert_chain(self.pair)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


def test_extender_and_scheduler_trust_each_other_at_every_step_of_the_runbook(
    store: MemoryStore, tmp_path: Path
) -> None:
    """The scheduler has its files from before or from now, the extender those of the last two minutes."""
    now = START - timedelta(days=22)
    kept(store, EXTENDER, now)
    replicas = [Side(store, SERVER_LEAF, tmp_path)]
    schedulers = [Side(store, CLIENT_LEAF, tmp_path)]

    def check() -> None:
        for replica in replicas:
            for scheduler in schedulers:
                server, client = replica.context(ssl.PROTOCOL_TLS_SERVER), scheduler.context(ssl.PROTOCOL_TLS_CLIENT)
                meet(client, server, host=f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc")

    def passes(time: timedelta) -> None:
        nonlocal now, replicas
        now += time
        kept(store, EXTENDER, now)
        replicas = [*replicas[-1:], Side(store, SERVER_LEAF, tmp_path)]
        check()

    store.annotate(SERVER_LEAF, names.NEW_CA_ASKED, written(now + timedelta(seconds=1)))
    passes(timedelta(seconds=1))
    passes(KNOWN_AFTER)
    assert kept(store, EXTENDER, now).last == Keep(
        "an administrator must give the new CA to its clients, before a leaf of it is requested", needs_action=True
    )
    passes(timedelta(days=20))
    schedulers.append(Side(store, CLIENT_LEAF, tmp_path))  # one of them restarts after the other
    check()
    schedulers.pop(0)
    store.annotate(SERVER_LEAF, names.NEW_LEAF_ASKED, written(now + timedelta(seconds=1)))
    passes(timedelta(seconds=1))
    passes(timedelta(minutes=2))
    passes(RETIREMENT)
    passes(timedelta(minutes=2))
    assert len(certificates(entry(store.items[EXTENDER.authority], CA_CRT))) == 1


def test_a_schedulers_certificate_of_90_days_is_replaced_and_copies_of_it_stay_valid(
    store: MemoryStore, tmp_path: Path
) -> None:
    kept(store, EXTENDER)
    earlier = replace(EXTENDER.rules.leaves[1], life=LEAF_LIFE)
    made = make_leaf(_authority(store), earlier, now=START)
    store.set_entry(CLIENT_LEAF, TLS_CRT, made.certificate)
    store.set_entry(CLIENT_LEAF, TLS_KEY, made.key)
    copy = Side(store, CLIENT_LEAF, tmp_path)
    kept(store, EXTENDER)
    ends = [_end(store, place) for place in EXTENDER.leaves]
    assert ends == [START + LEAF_LIFE, START + COPIED_LEAF_LIFE]
    server = Side(store, SERVER_LEAF, tmp_path).context(ssl.PROTOCOL_TLS_SERVER)
    meet(copy.context(ssl.PROTOCOL_TLS_CLIENT), server, host=f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc")


def _authority(store: MemoryStore) -> KeyPair:
    secret = store.items[EXTENDER.authority]
    return KeyPair(entry(secret, CA_CRT) or b"", entry(secret, CA_KEY) or b"")


def _end(store: MemoryStore, place: ObjectPath) -> datetime:
    (leaf,) = certificates(entry(store.items[place], TLS_CRT))
    return leaf.not_valid_after_utc


def test_a_patch_that_comes_too_late_changes_nothing(store: MemoryStore) -> None:
    place = CONFIGURATIONS[0]
    late = json.dumps([{"op": "replace", "path": "/metadata/resourceVersion", "value": "0"}]).encode()
    before = store.items[place]
    assert finished(store.patch(place, late)) is False
    assert store.items[place] == before


class Contested(MemoryStore):
    """Somebody spoils the certificate whenever it was repaired."""

    async def read(self, place: ObjectPath) -> Object | None:
        if place == LEAF and place in self.items:
            self.set_entry(place, TLS_CRT, b"garbage")
        return await super().read(place)


def test_a_chain_that_others_write_all_the_time_ends_a_pass_without_a_result() -> None:
    assert kept(Contested()).last is None
