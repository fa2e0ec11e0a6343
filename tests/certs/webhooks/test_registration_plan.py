from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any, Final

import jsonpatch
import pytest

from certs.chains import CONFIGURATIONS
from certs.webhooks.registration_plan import Wait, Write, is_rolled_out, plan_registration, wanted_webhooks, with_token
from halfcard import names
from halfcard.caller_tokens import split_path
from settings.installation import Settings, read_settings

BUNDLE: Final = base64.b64encode(b"the CA").decode()
OTHER_BUNDLE: Final = base64.b64encode(b"a newer CA").decode()
VALIDATING, MUTATING = CONFIGURATIONS
WANTED: Final = wanted_webhooks(Settings(), fails="Fail")
EMPTY: Final[dict[str, Any]] = {"metadata": {"name": "halfcard", "resourceVersion": "7"}}


def applied(configuration: dict[str, Any], step: Write) -> dict[str, Any]:
    changed: dict[str, Any] = jsonpatch.apply_patch(configuration, json.loads(step.patch))
    return changed


def registered(bundle: str = BUNDLE) -> dict[str, Any]:
    step = plan_registration(EMPTY, WANTED[VALIDATING], bundle=bundle, is_served=True)
    assert isinstance(step, Write)
    return applied(EMPTY, step)


def bundles(configuration: dict[str, Any]) -> set[str]:
    return {each["clientConfig"]["caBundle"] for each in configuration["webhooks"]}


def test_webhooks_are_registered_with_their_ca_when_a_replica_is_ready() -> None:
    found = registered()
    assert bundles(found) == {BUNDLE}
    assert [each["name"] for each in found["webhooks"]] == [each["name"] for each in WANTED[VALIDATING]]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"bundle": BUNDLE, "is_served": False}, "no replica of the webhook is ready"),
        ({"bundle": "", "is_served": True}, "the webhook's certificate names no CA"),
    ],
)
def test_nothing_is_registered_that_would_refuse_every_pod(state: Any, reason: str) -> None:
    assert plan_registration(EMPTY, WANTED[VALIDATING], **state) == Wait(reason)


def test_registered_webhooks_stay_when_all_replicas_are_gone() -> None:
    assert plan_registration(registered(), WANTED[VALIDATING], bundle="", is_served=False) is None


def test_a_deleted_configuration_is_not_created() -> None:
    """Helm deletes it first: creating it during an uninstall would leave webhooks without a server."""
    step = plan_registration(None, WANTED[VALIDATING], bundle=BUNDLE, is_served=True)
    assert isinstance(step, Wait) and step.is_chosen and "helm upgrade" in step.reason


def fails_open(webhooks: list[Any]) -> None:
    webhooks[0]["failurePolicy"] = "Ignore"


def narrower(webhooks: list[Any]) -> None:
    webhooks[0]["objectSelector"] = {"matchLabels": {"a": "b"}}


def another_path(webhooks: list[Any]) -> None:
    webhooks[1]["clientConfig"]["service"]["path"] = "/validate/nothing"


def by_address(webhooks: list[Any]) -> None:
    webhooks[0]["clientConfig"] = {"url": "https://elsewhere.example/validate/pods", "caBundle": BUNDLE}


def fewer_operations(webhooks: list[Any]) -> None:
    webhooks[0]["rules"][0]["operations"].remove("UPDATE")


def one_less(webhooks: list[Any]) -> None:
    webhooks.pop()


def one_more(webhooks: list[Any]) -> None:
    webhooks.append({**webhooks[0], "name": "more.example.com"})


EDITS: Final[dict[Callable[[list[Any]], None], str]] = {
    fails_open: "failurePolicy of validate-pods.halfcard.dev",
    narrower: "objectSelector of validate-pods.halfcard.dev",
    another_path: "clientConfig of validate-records.halfcard.dev",
    by_address: "clientConfig of validate-pods.halfcard.dev",
    fewer_operations: "rules of validate-pods.halfcard.dev",
    one_less: "its list of webhooks was changed",
    one_more: "its list of webhooks was changed",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_repaired_and_named_also_while_no_replica_is_ready(edit: Callable[[list[Any]], None]) -> None:
    found = registered()
    edited = copy.deepcopy(found)
    edit(edited["webhooks"])
    step = plan_registration(edited, WANTED[VALIDATING], bundle="", is_served=False)
    assert isinstance(step, Write) and step.reason == f"repaired: {EDITS[edit]}"
    assert applied(edited, step) == found


def test_a_repair_keeps_the_ca_bundle_that_the_certificates_wrote() -> None:
    edited = registered(OTHER_BUNDLE)
    fails_open(edited["webhooks"])
    step = plan_registration(edited, WANTED[VALIDATING], bundle=BUNDLE, is_served=True)
    assert isinstance(step, Write) and bundles(applied(edited, step)) == {OTHER_BUNDLE}


def test_another_ca_bundle_and_fields_of_newer_api_servers_are_no_edit() -> None:
    found = registered()
    found["webhooks"][0]["clientConfig"]["caBundle"] = ""
    found["webhooks"][0]["newField"] = "its default"
    assert plan_registration(found, WANTED[VALIDATING], bundle=BUNDLE, is_served=True) is None


def test_a_patch_names_the_version_that_was_read() -> None:
    step = plan_registration(EMPTY, WANTED[MUTATING], bundle=BUNDLE, is_served=True)
    assert isinstance(step, Write)
    assert json.loads(step.patch)[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_the_settings_and_the_failure_policy_decide_what_is_registered() -> None:
    settings = read_settings({"exempt_namespaces": ["gpu-operator"], "dialects": ["tencent"]})
    pods = wanted_webhooks(settings, fails="Ignore")[VALIDATING][0]
    (exempt,) = pods["namespaceSelector"]["matchExpressions"]
    assert exempt["values"] == ["gpu-operator", names.NAMESPACE, names.KUBE_SYSTEM]
    assert pods["failurePolicy"] == "Ignore"
    assert "nvidia.com/gpumem" not in str(pods) and "tencent.com/vcuda-core" in str(pods)


# --- caller tokens ------------------------------------------------------------------------------------------------

OLD, NEW = "a" * 64, "b" * 64


def test_a_new_caller_token_is_registered_in_one_write_without_an_event_and_without_being_named() -> None:
    before = applied_with(OLD, EMPTY)
    step = plan_registration(before, with_token(WANTED[VALIDATING], NEW), bundle="", is_served=False)
    assert isinstance(step, Write) and step.is_routine
    assert step.reason == "the caller token was replaced"
    after = applied(before, step)
    assert {split_path(path)[0] for path in paths(after)} == {NEW}
    assert {split_path(path)[1] for path in paths(after)} == paths(registered())
    assert bundles(after) == {BUNDLE}


def test_an_edit_beside_a_new_caller_token_is_reported_and_no_token_is_named() -> None:
    edited = copy.deepcopy(applied_with(OLD, EMPTY))
    fails_open(edited["webhooks"])
    step = plan_registration(edited, with_token(WANTED[VALIDATING], NEW), bundle="", is_served=False)
    assert isinstance(step, Write) and not step.is_routine
    assert "failurePolicy" in step.reason and OLD not in step.reason and NEW not in step.reason


def applied_with(token: str, configuration: dict[str, Any]) -> dict[str, Any]:
    step = plan_registration(configuration, with_token(WANTED[VALIDATING], token), bundle=BUNDLE, is_served=True)
    assert isinstance(step, Write)
    return applied(configuration, step)


def paths(configuration: dict[str, Any]) -> set[str]:
    return {each["clientConfig"]["service"]["path"] for each in configuration["webhooks"]}


DEPLOYMENTS: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "of an earlier version": ({"volumes": []}, False),
    "rolled out": ({}, True),
    "not seen yet": ({"observedGeneration": 1}, False),
    "half rolled out": ({"updatedReplicas": 1}, False),
    "scaled to zero": ({"updatedReplicas": 0, "replicas": 0}, True),
}


@pytest.mark.parametrize("state", DEPLOYMENTS)
def test_all_replicas_know_of_caller_tokens_once_the_deployment_is_rolled_out(state: str) -> None:
    changed, is_done = DEPLOYMENTS[state]
    status = {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, **changed}
    volumes = status.pop("volumes", [{"secret": {"secretName": names.ADMISSION_CALLERS}}])
    spec = {"template": {"spec": {"volumes": volumes}}}
    assert is_rolled_out({"metadata": {"generation": 2}, "spec": spec, "status": status}) is is_done
