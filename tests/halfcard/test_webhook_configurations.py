from __future__ import annotations

import re
from typing import Any

import pytest

from admission.dispatch import STAGES
from halfcard import names
from halfcard.dialects import Dialects
from halfcard.pod.foreign_requests import ANNOTATIONS, BEGINNINGS
from halfcard.pod.holders import BUILT_IN, WELL_KNOWN
from halfcard.ways_to_cards import ANNOTATION_HINTS, VARIABLES, Effect
from halfcard.webhook_configurations import concerns_us, configurations, plural
from tests.builders import Json

DIALECTS = Dialects()
MUTATING, VALIDATING = configurations(DIALECTS, exempt=["kube-system", "halfcard-system"], ca_bundle="Q0E=")
WEBHOOKS: list[Json] = [*MUTATING["webhooks"], *VALIDATING["webhooks"]]


def webhook(path: str) -> Json:
    (found,) = (each for each in WEBHOOKS if each["clientConfig"]["service"]["path"] == path)
    return found


def condition(path: str, name: str) -> str:
    (found,) = (each["expression"] for each in webhook(path)["matchConditions"] if each["name"] == name)
    return str(found)


def sent(path: str) -> dict[str, list[str]]:
    """Returns the resources that are sent, each with its operations."""
    return {resource: rule["operations"] for rule in webhook(path)["rules"] for resource in rule["resources"]}


def test_every_path_is_registered_once_and_exists() -> None:
    paths = [each["clientConfig"]["service"]["path"] for each in WEBHOOKS]
    assert sorted(paths) == sorted(STAGES)
    assert all(each["clientConfig"]["caBundle"] == "Q0E=" for each in WEBHOOKS)


def test_a_bundle_that_something_else_injects_is_omitted() -> None:
    for each in configurations(DIALECTS, exempt=[]):
        assert all("caBundle" not in webhook["clientConfig"] for webhook in each["webhooks"])


def test_mutating_fails_open_and_what_protects_neighbours_fails_closed() -> None:
    failing = {each["clientConfig"]["service"]["path"]: each["failurePolicy"] for each in WEBHOOKS}
    closed = (names.VALIDATE_PODS_PATH, names.VALIDATE_RECORDS_PATH, names.VALIDATE_CLAIMS_PATH)
    assert [failing.pop(path) for path in closed] == ["Fail"] * 3
    assert set(failing.values()) == {"Ignore"}


def test_pods_are_sent_with_everything_that_changes_them() -> None:
    for path in (names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH):
        assert sent(path)["pods"] == ["CREATE", "UPDATE"]
        assert sent(path)["pods/ephemeralcontainers"] == ["UPDATE"]
    assert sent(names.VALIDATE_PODS_PATH)["pods/resize"] == ["UPDATE"]


def test_bindings_and_statuses_are_sent() -> None:
    assert sent(names.VALIDATE_RECORDS_PATH) == {
        "pods/binding": ["CREATE"],
        "bindings": ["CREATE"],
        "pods/status": ["UPDATE"],
    }


def test_every_kind_with_a_template_is_sent() -> None:
    wanted = {(*key.rpartition("/")[::2],) for key in (*BUILT_IN, *WELL_KNOWN)}
    for path in (names.MUTATE_WORKLOADS_PATH, names.VALIDATE_WORKLOADS_PATH):
        rules = webhook(path)["rules"]
        found = [(rule["apiGroups"][0], resource) for rule in rules for resource in rule["resources"]]
        assert sorted(found) == sorted((group, plural(kind)) for group, kind in wanted)
        assert all(rule["apiVersions"] == (["*"] if "." in rule["apiGroups"][0] else ["v1"]) for rule in rules)


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("TFJob", "tfjobs"), ("InferenceService", "inferenceservices"), ("Proxy", "proxies"), ("Gas", "gases")],
)
def test_a_resource_is_named_like_its_kind(kind: str, resource: str) -> None:
    assert plural(kind) == resource


def test_custom_resources_are_those_of_the_settings_and_reach_us_without_a_condition_on_their_templates() -> None:
    for each in configurations(DIALECTS, exempt=[], custom=["example.com/Trainer", "example.com/Tuner"]):
        (workloads,) = (found for found in each["webhooks"] if "workloads" in found["name"])
        assert workloads["rules"][-1] == {
            "apiGroups": ["example.com"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["trainers", "tuners"],
        }
        assert workloads["failurePolicy"] == "Ignore"
    own = "!(request.kind.group in ['', 'apps', 'batch']) || "
    assert condition(names.MUTATE_WORKLOADS_PATH, "reaches-for-a-gpu").startswith(own)


@pytest.mark.parametrize("each", WEBHOOKS, ids=[each["name"] for each in WEBHOOKS])
def test_every_webhook_declares_its_side_effects_spares_exempt_namespaces_and_answers_soon(each: Json) -> None:
    reserves = each["name"] == names.webhook_name(names.VALIDATE_PODS_PATH)
    assert each["sideEffects"] == ("NoneOnDryRun" if reserves else "None")
    assert each["timeoutSeconds"] <= 10
    assert each["admissionReviewVersions"] == ["v1", "v1beta1"]
    (selector,) = each["namespaceSelector"]["matchExpressions"]
    assert selector["operator"] == "NotIn"
    assert set(selector["values"]) == {"kube-system", "halfcard-system"}
    assert each["name"].count(".") >= 2


def test_the_webhooks_are_called_again_after_another_webhook_changed_the_object() -> None:
    assert all(each["reinvocationPolicy"] == "IfNeeded" for each in MUTATING["webhooks"])
    assert all("reinvocationPolicy" not in each for each in VALIDATING["webhooks"])


@pytest.mark.parametrize(
    "word",
    [
        *sorted(DIALECTS.resources),
        names.SLOT,
        names.DEVICE_CLASS_PREFIX,
        "resourceClaims",
        *(row.name for row in VARIABLES if row.effect in (Effect.CHOOSES, Effect.BRINGS)),
        *names.OWNED_PREFIXES,
        *names.OWNED_SUFFIXES,
        *ANNOTATION_HINTS,
        "hostPath",
        "ephemeralContainers",
        "initContainers",
        "nvidia-container-devices",
    ],
)
def test_the_condition_lets_every_pod_through_that_a_rule_could_concern(word: str) -> None:
    assert re.search(rf"\b{re.escape(word)}|'{re.escape(word)}", concerns_us(DIALECTS, pods="[object]"))


def test_requests_of_other_systems_reach_only_webhooks_that_fail_open() -> None:
    for told in (*BEGINNINGS, *[row.name for row in ANNOTATIONS]):
        for hook in WEBHOOKS:
            path = hook["clientConfig"]["service"]["path"]
            is_sent = f"'{told}'" in condition(path, "reaches-for-a-gpu")
            assert not is_sent or hook["failurePolicy"] == "Ignore"
            assert is_sent or path not in (names.MUTATE_PODS_PATH, names.MUTATE_WORKLOADS_PATH)


def test_the_condition_names_only_resources_of_enabled_dialects() -> None:
    assert names.TUYA_SGPU not in concerns_us(Dialects.named(["tencent"]), pods="[object]")


@pytest.mark.parametrize("each", WEBHOOKS, ids=[each["name"] for each in WEBHOOKS])
def test_every_loop_of_a_condition_begins_with_what_keeps_it_linear(each: Json) -> None:
    for expression in (found["expression"] for found in each["matchConditions"]):
        loops = re.findall(r"\.(\w+)\((\w+), (.{12})", expression)
        assert {name for name, _, _ in loops} <= {"filter"}
        assert all(test.startswith((f"{item} in ['']", f"!({item} in [''")) for _, item, test in loops)


def test_brackets_of_the_condition_are_closed() -> None:
    depth: Any = 0
    for char in concerns_us(DIALECTS, pods="[object]"):
        depth += {"(": 1, ")": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0


def test_an_update_that_removes_a_record_is_sent() -> None:
    for path in (names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH, names.VALIDATE_RECORDS_PATH):
        assert "oldObject.metadata.annotations" in condition(path, "reaches-for-a-gpu")


@pytest.mark.parametrize("path", sorted(STAGES))
def test_writes_of_halfcard_itself_are_not_sent(path: str) -> None:
    assert all(f"'{user}'" in condition(path, "not-halfcard-itself") for user in names.OWN_USERS)


def test_every_webhook_has_match_conditions() -> None:
    assert all(hook["matchConditions"] for hook in WEBHOOKS)
