"""Other ways to write a record: annotations of a Binding are merged into the pod, and a status has metadata.

The stock scheduler is used as an example of a scheduler without Halfcard.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from devcluster.control_plane.client import ApiResponse
from devcluster.control_plane.users import User
from devcluster.objects import Object
from devcluster.services.installation import TRUSTED_USER, Installation
from halfcard import names
from tests.builders import pod

from .manifests import SHARE, complete, share
from .test_webhook_outages import down

RECORD: Final = "tencent.com/predicate-gpu-idx-0"
NODE: Final = "gpu-1"
PATHS: Final = {"pods/binding": "pods/p/binding", "bindings": "bindings"}
WRITES: Final = ("pods/binding", "bindings", "pods/status")


def grant(webhook: Installation, space: str, user: str) -> None:
    """Grants rights that the default roles do not have."""
    for arguments in (
        ("role", "binder", "--verb=create,patch", f"--resource={','.join(WRITES)}"),
        ("rolebinding", "binder", "--role=binder", f"--user={user}"),
    ):
        done = webhook.kubectl(space, "create", *arguments)
        assert done.code == 0, done.stderr


@pytest.fixture
def binder(webhook: Installation, space: str) -> User:
    tenant = webhook.cluster.tenant(space, "alice")
    grant(webhook, space, tenant.name)
    return tenant


def pending_pod() -> Object:
    """Returns a pod that the stock scheduler ignores."""
    return complete(pod("p").asks(core="30", memory="20").specified(schedulerName="no-scheduler"))


def binding(**metadata: Any) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", **metadata}, "target": target}


def bind(
    webhook: Installation, space: str, user: User, path_suffix: str = "pods/p/binding", **metadata: Any
) -> ApiResponse:
    path = f"/api/v1/namespaces/{space}/{path_suffix}"
    return webhook.cluster.request("POST", path, binding(**metadata), user=user)


def stored(webhook: Installation, space: str) -> tuple[str | None, dict[str, str]]:
    """Returns node and annotations of the pod."""
    item = webhook.get(space, "pod", "p")
    return item["spec"].get("nodeName"), item["metadata"].get("annotations", {})


def calls_for_records(webhook: Installation) -> int:
    return webhook.calls(names.VALIDATE_RECORDS_PATH)


# --- bindings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path_suffix", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_a_tenants_binding_with_a_record_is_refused(
    webhook: Installation, space: str, binder: User, path_suffix: str, field: str
) -> None:
    webhook.create(space, pending_pod(), user=binder).must()
    refused = bind(webhook, space, binder, path_suffix, **{field: {RECORD: "0"}})
    assert refused.status == 403
    assert f'metadata.{field}["{RECORD}"]: got "0"' in refused.body["message"]
    assert "remove it [HC020]" in refused.body["message"]
    assert stored(webhook, space)[0] is None


@pytest.mark.parametrize("path_suffix", PATHS.values(), ids=PATHS)
def test_a_binding_without_a_record_does_not_reach_the_webhook(
    webhook: Installation, space: str, binder: User, path_suffix: str
) -> None:
    webhook.create(space, pending_pod(), user=binder).must()
    before = webhook.calls()
    bind(webhook, space, binder, path_suffix, annotations={"scheduler.example.com/score": "7"}).must()
    node, annotations = stored(webhook, space)
    assert (node, annotations["scheduler.example.com/score"]) == (NODE, "7")
    assert webhook.calls() == before


def test_a_binding_with_a_record_of_a_trusted_peer_is_admitted(webhook: Installation, space: str) -> None:
    peer = webhook.cluster.tenant(space, TRUSTED_USER)
    grant(webhook, space, peer.name)
    webhook.create(space, pending_pod()).must()
    bind(webhook, space, peer, annotations={RECORD: "0"}).must()
    node, annotations = stored(webhook, space)
    assert (node, annotations[RECORD]) == (NODE, "0")


def test_a_binding_with_a_cdi_annotation_is_refused(webhook: Installation, space: str, binder: User) -> None:
    webhook.create(space, pending_pod(), user=binder).must()
    refused = bind(webhook, space, binder, annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"})
    assert refused.status == 403
    assert "[HC027]" in refused.body["message"]


def test_bindings_in_exempt_namespaces_do_not_reach_the_webhook(webhook: Installation) -> None:
    before = webhook.calls()
    webhook.create(names.KUBE_SYSTEM, pending_pod()).must()
    bind(webhook, names.KUBE_SYSTEM, webhook.cluster.admin, annotations={RECORD: "0"}).must()
    assert webhook.calls() == before
    webhook.cluster.request("DELETE", f"/api/v1/namespaces/{names.KUBE_SYSTEM}/pods/p?gracePeriodSeconds=0").must()


def test_the_stock_scheduler_binds_as_before(webhook: Installation, space: str) -> None:
    webhook.cluster.add_node(NODE, {names.VCUDA_CORE: "800", names.VCUDA_MEMORY: "512"})
    before = calls_for_records(webhook)
    webhook.create(space, share("p")).must()
    webhook.cluster.wait_until(lambda: stored(webhook, space)[0] is not None, what="the pod to have a node")
    assert calls_for_records(webhook) == before


def test_while_down_only_a_binding_with_a_record_is_refused(webhook: Installation, space: str, binder: User) -> None:
    webhook.create(space, pending_pod(), user=binder).must()
    with down(webhook):
        refused = bind(webhook, space, binder, annotations={RECORD: "0"})
        assert refused.status == 500
        assert f'failed calling webhook "{names.webhook_name(names.VALIDATE_RECORDS_PATH)}"' in refused.body["message"]
        bind(webhook, space, binder).must()


# --- halfcard's extender ------------------------------------------------------------------------------------------


def fence(webhook: Installation, space: str, value: str | None, user: User) -> ApiResponse:
    change = {"metadata": {"annotations": {names.FENCE: value}}}
    path = f"/api/v1/namespaces/{space}/pods/p"
    return webhook.cluster.client.request(user, "PATCH", path, change, content_type="application/merge-patch+json")


def test_the_extender_fences_and_binds_while_the_webhook_is_down(webhook: Installation, space: str) -> None:
    webhook.create(space, pending_pod()).must()
    with down(webhook):
        fence(webhook, space, "replica-a", webhook.extender).must()
        bind(webhook, space, webhook.extender, annotations={names.PLACEMENT: "0", RECORD: "0"}).must()
    node, annotations = stored(webhook, space)
    assert node == NODE
    assert (annotations[names.FENCE], annotations[names.PLACEMENT], annotations[RECORD]) == ("replica-a", "0", "0")


def test_a_tenant_cannot_remove_or_change_the_fence_of_a_pending_pod(webhook: Installation, space: str) -> None:
    tenant = webhook.cluster.tenant(space, "alice")
    webhook.create(space, pending_pod(), user=tenant).must()
    fence(webhook, space, "replica-a", webhook.extender).must()
    for value in (None, "mine"):
        refused = fence(webhook, space, value, tenant)
        assert refused.status == 403
        assert "put it back [HC020]" in refused.body["message"]
    assert stored(webhook, space)[1][names.FENCE] == "replica-a"


def test_a_tenant_may_choose_a_model_and_a_known_policy_for_a_pending_pod(webhook: Installation, space: str) -> None:
    tenant = webhook.cluster.tenant(space, "alice")
    choice = {names.ASK_POLICY: "spread", names.ASK_MODEL: "T4"}
    webhook.create(space, complete(pod("p").asks(**SHARE).annotated(choice)), user=tenant).must()
    refused = webhook.kubectl(space, "annotate", "--overwrite", "pod", "p", f"{names.ASK_POLICY}=tight")
    assert "[HC014]" in refused.stderr
    done = webhook.kubectl(space, "annotate", "--overwrite", "pod", "p", f"{names.ASK_MODEL}=A10")
    assert done.code == 0, done.stderr


# --- status, and copies of static pods ----------------------------------------------------------------------------


def patch_status(webhook: Installation, space: str, user: User, **change: Any) -> ApiResponse:
    path = f"/api/v1/namespaces/{space}/pods/p/status"
    return webhook.cluster.client.request(user, "PATCH", path, change, content_type="application/merge-patch+json")


def test_a_status_update_cannot_write_a_record(webhook: Installation, space: str, binder: User) -> None:
    webhook.create(space, pending_pod(), user=binder).must()
    refused = patch_status(webhook, space, binder, metadata={"annotations": {RECORD: "0"}})
    assert refused.status == 403
    assert "[HC020]" in refused.body["message"]
    patch_status(webhook, space, binder, metadata={"annotations": {"note": "mine"}}).must()
    assert stored(webhook, space)[1]["note"] == "mine", "the API server accepts annotations in a status update"


def test_a_status_update_by_kubelet_does_not_reach_the_webhook(webhook: Installation, space: str) -> None:
    webhook.cluster.add_node(NODE, {names.VCUDA_CORE: "800", names.VCUDA_MEMORY: "512"})
    webhook.create(space, pending_pod()).must()
    bind(webhook, space, webhook.extender, annotations={RECORD: "0"}).must()
    before = webhook.calls()
    patch_status(webhook, space, webhook.cluster.node_user(NODE), status={"phase": "Running"}).must()
    assert webhook.calls() == before


def mirror(name: str, node_uid: str) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node_uid, "controller": True}
    item = complete(pod(name).asks(core="30", memory="20").annotated({names.MIRROR_POD: "hash", RECORD: "0"}))
    item["metadata"]["ownerReferences"] = [owner]
    item["spec"]["nodeName"] = NODE
    return item


def test_only_kubelet_may_create_a_mirror_pod(webhook: Installation, space: str) -> None:
    webhook.cluster.add_node(NODE, {names.VCUDA_CORE: "800", names.VCUDA_MEMORY: "512"})
    node = webhook.cluster.request("GET", f"/api/v1/nodes/{NODE}").must()
    tenant = webhook.cluster.tenant(space, "alice")
    refused = webhook.create(space, mirror("p", node["metadata"]["uid"]), user=tenant)
    assert refused.status == 403
    assert "[HC020]" in refused.body["message"] and "[HC026]" in refused.body["message"]
    webhook.create(space, mirror("p", node["metadata"]["uid"]), user=webhook.cluster.node_user(NODE)).must()
