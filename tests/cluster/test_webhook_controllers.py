"""Workloads: their controllers create repaired pods, and a refusal becomes an event of the owner."""

from __future__ import annotations

from typing import Any, Final

import pytest

from devcluster.objects import Object
from devcluster.services.installation import Installation, collection
from halfcard import names

from .manifests import bad, resources, share, workload

KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
REPAIRED: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}


def pods(webhook: Installation, space: str) -> list[Object]:
    items: list[Object] = webhook.cluster.request("GET", f"/api/v1/namespaces/{space}/pods").must()["items"]
    return items


def wait_for_pod(webhook: Installation, space: str) -> Object:
    webhook.cluster.wait_until(lambda: bool(pods(webhook, space)), what="the controller to create a pod")
    return pods(webhook, space)[0]


def template(kind: str, stored: Object) -> Any:
    spec = stored["spec"]
    return (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)["template"]


def run_once(webhook: Installation, space: str, name: str) -> None:
    """Starts a Job of a CronJob, whose schedule would take a minute."""
    done = webhook.kubectl(space, "create", "job", "--from", f"cronjob/{name}", "by-hand")
    assert done.code == 0, done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_creates_repaired_pods(webhook: Installation, space: str, kind: str) -> None:
    webhook.cluster.add_node("gpu-1", {names.VCUDA_CORE: "800", names.VCUDA_MEMORY: "512"})  # a DaemonSet needs one
    webhook.create(space, workload(kind, "train", share("train"))).must()
    stored = webhook.get(space, kind, "train")
    assert resources(template(kind, stored)) == {"limits": REPAIRED}
    if kind == "CronJob":
        run_once(webhook, space, "train")
    made = wait_for_pod(webhook, space)
    assert resources(made) == {"limits": REPAIRED, "requests": REPAIRED}
    assert made["metadata"]["annotations"][names.TENCENT + names.CORE_LIMIT_SUFFIX] == "30"
    cleanup = webhook.kubectl(space, "delete", kind, "train", "--cascade=background")
    assert cleanup.code == 0, cleanup.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_template_is_refused_before_a_controller_sees_it(webhook: Installation, space: str, kind: str) -> None:
    refused = webhook.create(space, workload(kind, "wrong", bad("wrong")))
    assert refused.status == 403
    assert ".template.spec.containers[0].resources" in refused.body["message"]
    assert "[HC002]" in refused.body["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_file_of_a_workload_is_applied_and_replaced_again(
    webhook: Installation, space: str, kind: str
) -> None:
    item = workload(kind, "train", share("train"))
    first = webhook.kubectl(space, "apply", "-f-", item=item)
    assert first.code == 0, first.stderr
    before = webhook.get(space, kind, "train")["spec"]
    # a Job cannot be replaced: the API server adds a selector
    for how in ("apply", "replace")[: 1 if kind == "Job" else 2]:
        again = webhook.kubectl(space, how, "-f-", item=item)
        assert again.code == 0, again.stderr
    assert webhook.get(space, kind, "train")["spec"] == before
    webhook.kubectl(space, "delete", kind, "train")


def test_the_owner_of_a_refused_pod_gets_an_event(webhook: Installation, space: str) -> None:
    """The template is older than Halfcard: its pods are validated anyway."""
    owner = workload("ReplicaSet", "wrong", bad("wrong"))
    with webhook.unregistered():
        webhook.create(space, {**owner, "spec": {**owner["spec"], "replicas": 0}}).must()
    scaled = webhook.kubectl(space, "scale", "replicaset", "wrong", "--replicas=1")
    assert scaled.code == 0, scaled.stderr

    def event_message() -> str:
        events = webhook.cluster.request("GET", f"{collection(space, {'apiVersion': 'v1', 'kind': 'Event'})}").must()
        return next((each["message"] for each in events["items"] if each["reason"] == "FailedCreate"), "")

    webhook.cluster.wait_until(lambda: bool(event_message()), what="the event FailedCreate")
    assert event_message() == (
        'Error creating: admission webhook "mutate-pods.halfcard.dev" denied the request: '
        f'spec.containers[0].resources.limits["{names.VCUDA_CORE}"]: got "150"; cores must be 1-99 for a share of one'
        " card, or a multiple of 100 for whole cards; use 100 or 200 [HC002]"
    )
    webhook.kubectl(space, "delete", "replicaset", "wrong")


_CRD: Final[Object] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pytorchjobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "names": {"kind": "PyTorchJob", "plural": "pytorchjobs"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def _training(pod: Object) -> Object:
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": pod["spec"]}}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"}, "spec": spec}


def test_a_custom_resource_is_judged_once_its_definition_is_installed(webhook: Installation, space: str) -> None:
    """The webhooks were registered before: the API server obeys a rule as soon as it has the resource."""
    webhook.cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _CRD).must()
    jobs = collection(space, _training(bad("wrong")))
    webhook.cluster.wait_until(lambda: webhook.cluster.request("GET", jobs).status == 200, what="the new resource")

    refused = webhook.create(space, _training(bad("wrong")))
    stored = webhook.create(space, _training(share("train"))).must()

    assert refused.status == 403
    assert "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources" in refused.body["message"]
    assert resources(stored["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]) == {"limits": REPAIRED}
