"""`halfcard certs status` and `halfcard doctor` say the same about certificates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import jsonpatch
import pytest

from certs.chain_health import ObjectState, ReadChain, verdict
from certs.chains import CONFIGURATIONS, Chain, chains
from certs.objects import CA_CRT, TLS_CRT, written
from certs.reconcile import read_chain, reconcile
from cli.diagnosis.certificates.served_certificates import SECRETS
from cli.diagnosis.checks import diagnose
from cli.diagnosis.observations import secret_data
from cli.diagnosis.snapshot import Snapshot
from halfcard import names
from tests.certs.memory_store import MemoryStore, finished

from .healthy import CA, DAY, HEALTHY, NOW, Item, own_pod, registration
from .papers import leaf
from .planted import CERTS, process

ADMISSION, EXTENDER = chains(names.NAMESPACE)
(LEAF,) = ADMISSION.leaves


def _keep(store: MemoryStore, chain: Chain, at: datetime) -> None:
    finished(reconcile(store, chain, lambda: at))


Spoil = Callable[[MemoryStore], object]


def made(since: timedelta = -2 * DAY) -> MemoryStore:
    """Returns the objects of an installation that the certificate controller has kept."""
    store = MemoryStore()
    for place, item in zip(reversed(CONFIGURATIONS), registration(_without_ca), strict=True):
        store.put(place, item)
    for chain in (ADMISSION, EXTENDER):
        _keep(store, chain, NOW + since)
    return store


def _without_ca(webhook: Item) -> None:
    webhook["clientConfig"].pop("caBundle")


def seen(store: MemoryStore, of: Snapshot = HEALTHY) -> Snapshot:
    found = tuple(ReadChain(finished(read_chain(store, chain)), {}) for chain in (ADMISSION, EXTENDER))
    secrets = {place.name: secret_data(item) for place, item in store.items.items() if place.name in SECRETS}
    webhooks = tuple(store.items[place] for place in CONFIGURATIONS)
    return replace(of, chains=found, secrets=secrets, webhooks=webhooks)


def trust_another_issuer(store: MemoryStore) -> None:
    for place, item in zip(reversed(CONFIGURATIONS), registration(), strict=True):
        store.put(place, item)


def another_issuers(store: MemoryStore, *, age: timedelta) -> None:
    """Everything was made by another issuer, as by cert-manager."""
    served = leaf(CA, f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc", NOW - age).pem
    store.delete(ADMISSION.authority)
    store.set_entry(LEAF, TLS_CRT, served)
    store.set_entry(LEAF, CA_CRT, CA.pem)
    trust_another_issuer(store)


def ask_for_a_new_ca(store: MemoryStore) -> None:
    store.annotate(EXTENDER.leaves[0], names.NEW_CA_ASKED, written(NOW - DAY))
    for later in (timedelta(seconds=2), timedelta(minutes=20)):
        _keep(store, EXTENDER, NOW - DAY + later)


SPOILED: Final[dict[str, tuple[Spoil, str]]] = {
    "the certificate is deleted": (lambda store: store.delete(LEAF), "certificates-due"),
    "the CA is deleted": (lambda store: store.delete(EXTENDER.authority), "certificates-due"),
    "the certificate is garbage": (lambda store: store.set_entry(LEAF, TLS_CRT, b"x"), "certificates-due"),
    "the scheduler's certificate is deleted": (lambda store: store.delete(EXTENDER.leaves[1]), "certificates-due"),
    "the webhooks trust another issuer": (trust_another_issuer, "certificate-mismatch"),
    "an administrator must go on": (ask_for_a_new_ca, "certificates-need-you"),
    "another issuer's certificate has expired": (
        lambda store: another_issuers(store, age=100 * DAY),
        "certificate-expired",
    ),
}


@pytest.mark.parametrize(("spoil", "check"), SPOILED.values(), ids=SPOILED.keys())
def test_what_is_due_by_certs_status_is_found_by_the_doctor(spoil: Spoil, check: str) -> None:
    store = made()
    spoil(store)
    snapshot = seen(store)
    assert ObjectState.DUE in {verdict(each, NOW).state for each in snapshot.chains}
    assert {each.check for each in diagnose(snapshot).findings} == {check}


FINE: Final[dict[str, Spoil]] = {
    "just made": lambda _: None,
    "another issuer's": lambda store: another_issuers(store, age=DAY),
}


@pytest.mark.parametrize("spoil", FINE.values(), ids=FINE.keys())
def test_what_is_fine_by_certs_status_is_fine_by_the_doctor(spoil: Spoil) -> None:
    store = made()
    spoil(store)
    snapshot = seen(store)
    assert ObjectState.DUE not in {verdict(each, NOW).state for each in snapshot.chains}
    assert diagnose(snapshot).findings == ()


def test_certificates_that_expired_while_no_controller_ran_are_its_consequence() -> None:
    stopped = process(CERTS, is_off=True)
    found = diagnose(seen(made(-100 * DAY), of=stopped))
    assert {each.check for each in found.findings} == {"scaled-to-zero"}
    assert {"certificates-due", "certificate-expired"} <= {each.check for each in found.consequences}


def test_a_missing_secret_is_the_cause_of_pods_that_wait_for_it() -> None:
    store = made()
    store.delete(LEAF)
    waiting = own_pod(names.ADMISSION_SERVICE, is_ready=False, since=NOW - timedelta(minutes=10))
    found = diagnose(seen(store, of=process(names.ADMISSION_SERVICE, waiting)))
    assert {each.check for each in found.findings} == {"certificates-due"}


def test_chains_that_nobody_keeps_are_not_missed() -> None:
    """The certificates may be anywhere: in a folder, or made by another program."""
    store = made()
    for place in (ADMISSION.authority, LEAF, EXTENDER.authority, *EXTENDER.leaves):
        store.delete(place)
    apart = replace(process(CERTS), workloads=HEALTHY.workloads[:1])
    assert diagnose(seen(store, of=apart)).findings == ()


def test_the_command_for_another_ca_empties_exactly_the_wrong_bundles() -> None:
    store = made()
    trust_another_issuer(store)
    (_, command) = [each.command for each in diagnose(seen(store)).findings]
    configuration, _, patch = command.removeprefix("kubectl patch ").partition(" --type json -p ")
    kind, _, name = configuration.partition(" ")
    (place,) = (each for each in CONFIGURATIONS if each.collection.endswith(f"/{kind}s") and each.name == name)
    emptied = jsonpatch.apply_patch(store.items[place], json.loads(patch.strip("'")))
    assert {each["clientConfig"]["caBundle"] for each in emptied["webhooks"]} == {""}
    store.put(place, emptied)
    _keep(store, ADMISSION, NOW)
    assert [each.where for each in diagnose(seen(store)).findings] == [
        "caBundle of MutatingWebhookConfiguration halfcard"
    ]
