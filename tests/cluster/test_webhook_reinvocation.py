"""Another mutating webhook changes the pod after Halfcard: Halfcard is called again and corrects its own changes."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from devcluster.objects import Object
from devcluster.services.installation import Installation
from halfcard import names

from .manifests import resources, share
from .webhook_server import webhook_server

CORE_LIMIT: Final = names.TENCENT + names.CORE_LIMIT_SUFFIX
PROXY: Final = {"name": "proxy", "image": "example.invalid/proxy:1"}
SERVICE: Final = "injector"


def registration(cluster_bundle: str, namespace: str) -> Object:
    """Returns a configuration whose name, and so its turn, comes after Halfcard's."""
    hook = {
        "name": "injector.example.com",
        "clientConfig": {
            "service": {"namespace": namespace, "name": SERVICE, "path": "/"},
            "caBundle": cluster_bundle,
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {names.NAMESPACE_LABEL: namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": f"zz-{namespace}"}, "webhooks": [hook]}


def injecting(container: Object, called: threading.Event) -> Callable[[Object], Object]:
    """Returns a webhook that adds the container to every pod without it."""

    def review(request: Object) -> Object:
        called.set()
        present = {each["name"] for each in request["object"]["spec"]["containers"]}
        if container["name"] in present:
            return {"allowed": True}
        patch = [{"op": "add", "path": "/spec/containers/-", "value": container}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}

    return review


@contextmanager
def injector(webhook: Installation, space: str, container: Object) -> Iterator[None]:
    cluster, called = webhook.cluster, threading.Event()
    with webhook_server(cluster, f"{SERVICE}.{space}.svc", injecting(container, called)) as port:
        cluster.expose(space, SERVICE, 443, port)
        item = registration(cluster.authority.bundle(), space)
        applied = webhook.kubectl(space, "apply", "-f-", item=item)
        assert applied.code == 0, applied.stderr

        def is_called() -> bool:
            webhook.create(space, share("probe"), dry_run=True)
            return called.is_set()

        cluster.wait_until(is_called, what="the API server to call the second webhook")
        yield
        webhook.kubectl(space, "delete", "-f-", item=item)


def test_a_container_injected_after_halfcard_sees_no_gpu(webhook: Installation, space: str) -> None:
    with injector(webhook, space, PROXY):
        stored = webhook.create(space, share("one")).must()
    assert stored["spec"]["containers"][1]["env"] == [{"name": names.VISIBLE_DEVICES, "value": "void"}]
    assert stored["metadata"]["annotations"][CORE_LIMIT] == "30"


def test_the_core_limit_is_removed_if_an_injected_container_asks_for_another_share(
    webhook: Installation, space: str
) -> None:
    larger = {**PROXY, "resources": {"limits": {names.VCUDA_CORE: "0.6", names.VCUDA_MEMORY: "1Gi"}}}
    with injector(webhook, space, larger):
        stored = webhook.create(space, share("one")).must()
    assert resources(stored, number=1)["requests"] == {names.VCUDA_CORE: "60", names.VCUDA_MEMORY: "4"}
    assert CORE_LIMIT not in stored["metadata"].get("annotations", {})


def test_an_invalid_injected_container_is_refused(webhook: Installation, space: str) -> None:
    wrong = {**PROXY, "env": [{"name": names.VISIBLE_DEVICES, "value": "all"}]}
    with injector(webhook, space, wrong):
        refused = webhook.create(space, share("one"))
    assert refused.status == 403
    assert "spec.containers[1].env[0]" in refused.body["message"]
