from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import jsonpatch
import pytest

from admission.policy import AdmissionPolicy
from certs import objects
from certs.authority import make_authority
from certs.chains import CONFIGURATIONS, ObjectPath, chains
from certs.lifetimes import folder_rules
from certs.server_names import server_names
from halfcard import names
from halfcard.webhook_configurations import configurations
from tests.certs.handshakes import foreign_certificate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES = folder_rules(server_names(["halfcard.svc"]))
OURS = make_authority(RULES, now=NOW).certificate
NEW = make_authority(RULES, now=NOW).certificate
THEIRS = foreign_certificate()
INJECTED = {names.CERT_MANAGER_INJECTS + "ca-from": "halfcard-system/halfcard"}


def configuration(*bundles: bytes | None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    clients: list[dict[str, Any]] = [{"service": {"name": "s"}} for _ in bundles]
    for client, bundle in zip(clients, bundles, strict=True):
        if bundle is not None:
            client["caBundle"] = base64.b64encode(bundle).decode()
    return {
        "metadata": {"name": "halfcard", "resourceVersion": "7", "annotations": annotations},
        "webhooks": [{"name": str(at), "clientConfig": client} for at, client in enumerate(clients)],
    }


def trusted(item: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in item["webhooks"]]


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (configuration(OURS, None, b""), (OURS, b"", b"")),
        (configuration(OURS + THEIRS), (OURS,)),
        (configuration(THEIRS, OURS), (OURS,)),
        (configuration(b"garbage"), (b"",)),
        (configuration(None, annotations=INJECTED), ()),
        (configuration(), ()),
        (None, ()),
    ],
    ids=["empty ones", "others beside ours", "others alone", "garbage", "injected", "no webhooks", "not there"],
)
def test_a_bundle_is_halfcards_part_of_ca_bundle(item: dict[str, Any] | None, want: tuple[bytes, ...]) -> None:
    assert objects.bundles(item) == want


def test_unmanaged_webhooks_are_named() -> None:
    assert objects.why_unmanaged(configuration(THEIRS, OURS)) == "1 of its webhooks trust a CA of another issuer"
    assert "cert-manager.io/inject-ca-from says" in objects.why_unmanaged(configuration(None, annotations=INJECTED))
    assert objects.why_unmanaged(configuration(OURS + THEIRS, None)) == objects.why_unmanaged(None) == ""


def test_a_patch_replaces_halfcards_bundles_in_the_version_that_was_read() -> None:
    before = configuration(OURS, None, THEIRS, OURS + THEIRS)
    patch = json.loads(objects.bundle_patch(before, NEW))

    assert patch[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    assert trusted(jsonpatch.apply_patch(before, patch)) == [NEW, NEW, THEIRS, NEW + THEIRS]


def test_fields_of_other_programs_on_a_secret_stay() -> None:
    secret = {"metadata": {"name": "s", "annotations": {"theirs": "1"}}, "data": {"more": "bW9yZQ=="}, "type": "T"}

    changed = objects.with_annotation(objects.with_entries(secret, {"ca.crt": b"x"}), names.KNOWN_SINCE, "now")
    assert changed["data"] == {"more": "bW9yZQ==", "ca.crt": "eA=="} and changed["type"] == "T"
    assert changed["metadata"]["annotations"] == {"theirs": "1", names.KNOWN_SINCE: "now"}
    assert objects.with_annotation(changed, names.KNOWN_SINCE, None)["metadata"] == secret["metadata"]


@pytest.mark.parametrize("text", ["", "soon", "2026-03-01", "2026-13-01T12:00:00Z"])
def test_an_invalid_time_is_none(text: str) -> None:
    assert objects.time_of({"metadata": {"annotations": {names.KNOWN_SINCE: text}}}, names.KNOWN_SINCE) is None


def test_a_time_is_read_as_it_was_written() -> None:
    item = {"metadata": {"annotations": {names.KNOWN_SINCE: objects.written(NOW)}}}
    assert objects.time_of(item, names.KNOWN_SINCE) == NOW


def test_a_new_secret_is_of_the_namespace_of_its_place() -> None:
    made = objects.new_secret(ObjectPath("/api/v1/namespaces/here/secrets", "s"), "Opaque")
    assert made["metadata"] == {"name": "s", "namespace": "here"} and made["type"] == "Opaque"


def test_configurations_are_those_that_are_registered() -> None:
    registered = configurations(AdmissionPolicy().dialects, exempt=[])
    kinds = {(each["kind"].lower() + "s", each["metadata"]["name"]) for each in registered}
    assert {(place.collection.rpartition("/")[2], place.name) for place in CONFIGURATIONS} == kinds


def test_a_certificate_has_every_name_of_its_service() -> None:
    admission, extender = chains("ns")
    assert admission.rules.leaves[0].names == {
        "halfcard-admission",
        "halfcard-admission.ns",
        "halfcard-admission.ns.svc",
        "halfcard-admission.ns.svc.cluster.local",
    }
    assert "halfcard-extender.ns.svc" in extender.rules.leaves[0].names
