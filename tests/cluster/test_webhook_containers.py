"""Init containers, sidecars, ephemeral containers, and containers that are resized in place."""

from __future__ import annotations

from typing import Any, Final

import pytest

from devcluster.control_plane.client import ApiResponse
from devcluster.objects import Object
from devcluster.services.installation import Installation
from halfcard import names
from tests.builders import pod

from .manifests import SHARE, complete, resources, share

REPAIRED: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
VOID: Final = {"name": names.VISIBLE_DEVICES, "value": names.SEES_NOTHING}
LOOK: Final = {"name": "look", "image": "example.invalid/shell:1"}


def change(webhook: Installation, space: str, subresource: str, spec: dict[str, Any]) -> ApiResponse:
    """Sends a strategic merge patch, as kubectl does."""
    client, path = webhook.cluster.client, f"/api/v1/namespaces/{space}/pods/p/{subresource}"
    kind = "application/strategic-merge-patch+json"
    return client.request(webhook.cluster.admin, "PATCH", path, {"spec": spec}, content_type=kind)


def test_init_containers_and_sidecars_are_repaired_too(webhook: Installation, space: str) -> None:
    item = complete(pod().init(**SHARE).sidecar(**SHARE).asks(**SHARE))
    stored = webhook.create(space, item).must()
    for field, number in (("containers", 0), ("initContainers", 0), ("initContainers", 1)):
        assert resources(stored, field, number) == {"limits": REPAIRED, "requests": REPAIRED}


def test_a_bad_sidecar_is_refused_with_its_path(webhook: Installation, space: str) -> None:
    refused = webhook.create(space, complete(pod().asks(**SHARE).sidecar(core="250", memory="20")))
    assert "spec.initContainers[0].resources" in refused.body["message"]


def test_containers_without_gpu_beside_one_with_it_see_none(webhook: Installation, space: str) -> None:
    stored = webhook.create(space, complete(pod().asks(**SHARE).container().container("initContainers"))).must()
    spec = stored["spec"]
    assert "env" not in spec["containers"][0]
    assert spec["containers"][1]["env"] == [VOID]
    assert spec["initContainers"][0]["env"] == [VOID]


def test_an_ephemeral_container_of_a_gpu_pod_sees_no_gpu(webhook: Installation, space: str) -> None:
    webhook.create(space, share("p")).must()
    added = change(webhook, space, "ephemeralcontainers", {"ephemeralContainers": [LOOK]}).must()
    assert added["spec"]["ephemeralContainers"][0]["env"] == [VOID]
    second = {"ephemeralContainers": [{**LOOK, "name": "again"}]}  # the merge puts it before the first
    twice = change(webhook, space, "ephemeralcontainers", second).must()
    assert [each["env"] for each in twice["spec"]["ephemeralContainers"]] == [[VOID], [VOID]]


def test_kubectl_debug_works(webhook: Installation, space: str) -> None:
    webhook.create(space, share("p")).must()
    how = ("--image=example.invalid/shell:1", "--container=look", "--profile=general")
    done = webhook.kubectl(space, "debug", "p", *how)
    assert done.code == 0, done.stderr
    assert webhook.get(space, "pod", "p")["spec"]["ephemeralContainers"][0]["env"] == [VOID]


@pytest.mark.parametrize("built", [pod().asks(**SHARE), pod().container()], ids=["beside a share", "beside nothing"])
def test_an_ephemeral_container_may_not_choose_its_gpus(webhook: Installation, space: str, built: Any) -> None:
    webhook.create(space, complete(built)).must()
    all_of_them = {**LOOK, "env": [{"name": names.VISIBLE_DEVICES, "value": "all"}]}
    refused = change(webhook, space, "ephemeralcontainers", {"ephemeralContainers": [all_of_them]})
    assert refused.status == 403
    assert "spec.ephemeralContainers[0].env[0]" in refused.body["message"]
    assert "[HC021]" in refused.body["message"]


def resized(amounts: dict[str, str]) -> Object:
    return {"containers": [{"name": "containers-0", "resources": {"limits": amounts, "requests": amounts}}]}


def test_the_cpu_of_a_gpu_container_can_be_resized(webhook: Installation, space: str) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    item = complete(pod().container(limits={**amounts, names.VCUDA_CORE: "0.3", names.VCUDA_MEMORY: "5Gi"}))
    webhook.create(space, item).must()
    answer = change(webhook, space, "resize", resized({"cpu": "2"})).must()
    assert resources(answer)["limits"] == {"cpu": "2", "memory": "1Gi", **REPAIRED}


def test_the_gpu_of_a_container_cannot_be_resized(webhook: Installation, space: str) -> None:
    webhook.create(space, share("p")).must()
    refused = change(webhook, space, "resize", resized({names.VCUDA_CORE: "50"}))
    assert refused.status in (403, 422)
    assert resources(webhook.get(space, "pod", "p")) == {"limits": REPAIRED, "requests": REPAIRED}
