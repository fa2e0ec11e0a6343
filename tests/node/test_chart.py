"""Halfcard from its chart, as pods of its own image on a real node: installed, upgraded under load, removed.

The extender is asked by the stock scheduler over mutual TLS, with the certificate that the chart's keeper made for it.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from deploy.image.build import default_cache, image
from halfcard import names
from tests.builders import pod
from tests.cluster.client import Answer
from tests.cluster.cluster import Cluster
from tests.cluster.dump import dump
from tests.cluster.hammer import Hammer
from tests.cluster.helm import Helm
from tests.cluster.load import UNHURRIED
from tests.cluster.manifests import bad, share
from tests.cluster.node import Node
from tests.cluster.objects import Object
from tests.cluster.pods import busybox_pod, create_pod, get_pod, wait_for_phase
from tests.cluster.quota_service import path_of, quota
from tests.cluster.scheduling import schedule_by, shipped
from tests.cluster.site import cards_of

from .evening import type_the_readme
from .gpu_churn import runs_of
from .told import telling

_VALUES: Final = {"agent": {"arguments": ["--fake-gpus=4xT4"]}}
_OTHER_SETTINGS: Final = {
    **_VALUES,
    "settings": {"packing": "spread", "exempt_namespaces": ["elsewhere"]},  # registers the webhooks otherwise, too
    "webhooks": {"guard": True},
}
_OWN_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_LARGEST_IMAGE: Final = 45_000_000
_FIRST_EVENING_S: Final = 300.0
_TENANTS: Final = "team-a"
_THEIR_GATE: Final = "example.com/other"


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    """What was there before Halfcard; filled in by `evening`."""
    return {}


@dataclass(frozen=True)
class Evening:
    """Halfcard, installed in the words of the README on an empty cluster; `began` is before there was one."""

    helm: Helm
    began: float


@pytest.fixture(scope="module")
def evening(before: dict[str, str]) -> Iterator[Evening]:
    began = time.monotonic()
    with Cluster(flags=UNHURRIED) as cluster, Node(cluster, "gpu-a") as node:
        cluster.create_namespace(_TENANTS)
        create_pod(cluster, _TENANTS, gated("waits"))
        before |= dump(cluster)
        type_the_readme(cluster, node)
        ask_the_extender(cluster)
        yield Evening(Helm(cluster), began)


@pytest.fixture
def helm(evening: Evening) -> Helm:
    return evening.helm


def gated(name: str) -> Object:
    """Behind the gate of a quota, and behind somebody else's."""
    item = busybox_pod(name, "exec sleep infinity")
    item["spec"]["schedulingGates"] = [{"name": names.QUOTA_GATE}, {"name": _THEIR_GATE}]
    return item


def ask_the_extender(cluster: Cluster) -> None:
    """There is no kube-proxy: the scheduler is told of a pod instead of the Service."""
    entries = certificate(cluster)
    folder = cluster.folder / "scheduler-tls"
    folder.mkdir(exist_ok=True)
    for name, content in entries.items():
        (folder / name).write_bytes(base64.b64decode(content))
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    address = own_pods(cluster, names.EXTENDER_SERVICE)[0]["status"]["podIP"]
    schedule_by(
        cluster,
        shipped(
            "halfcard.yaml",
            url=f"https://{address}:{names.EXTENDER_PORT}/scheduler",
            tls={key: str(folder / name) for key, name in files.items()},
        ),
    )


def certificate(cluster: Cluster) -> Mapping[str, str]:
    """The scheduler's, as it stands in its Secret."""
    secret = cluster.request("GET", f"/api/v1/namespaces/{names.NAMESPACE}/secrets/{names.SCHEDULER_TLS}").must()
    found: Mapping[str, str] = secret["data"]
    return found


def own_pods(cluster: Cluster, name: str) -> list[Object]:
    answer = cluster.request("GET", f"{_OWN_PODS}?labelSelector=app.kubernetes.io/name={name}")
    items: list[Object] = answer.must()["items"]
    return [each for each in items if "deletionTimestamp" not in each["metadata"]]


def run_share(cluster: Cluster, name: str) -> Any:
    created = create_pod(cluster, _TENANTS, telling(pod(name).asks(core=30, memory=10)).manifest)
    return wait_for_phase(cluster, _TENANTS, created, "Running")


def test_the_image_is_the_same_when_it_is_built_again() -> None:
    built = image(default_cache())
    assert built == image(default_cache())
    assert len(built) < _LARGEST_IMAGE


def test_from_nothing_to_the_first_share_takes_less_than_five_minutes(evening: Evening) -> None:
    running = run_share(evening.helm.cluster, "one")
    seconds = time.monotonic() - evening.began
    sys.stderr.write(f"from no cluster to the first share: {seconds:.0f} s\n")
    assert seconds < _FIRST_EVENING_S
    assert [len(cards) for cards in cards_of(running).values()] == [1], "on the card that was recorded for it"


def test_what_cannot_be_is_refused_with_the_rule_and_the_fix(helm: Helm) -> None:
    done = helm.cluster.kubectl("create", "-f-", f"--namespace={_TENANTS}", stdin=json.dumps(bad("much")))
    assert done.code == 1
    assert 'got "150"; cores must be 1-99 for a share of one card, or a multiple of 100' in done.stderr
    assert "use 100 or 200 [HC002]" in done.stderr


def test_only_the_agent_needs_more_than_the_restricted_standard_gives(helm: Helm) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    done = helm.cluster.kubectl("label", "--dry-run=server", "namespace", names.NAMESPACE, label)
    assert set(re.findall(r"halfcard-([a-z]+)[-a-z0-9]*:", done.stderr)) == {"agent"}, done.stderr


def test_an_upgrade_fails_no_call_and_neither_it_nor_the_way_back_touches_a_running_pod(helm: Helm) -> None:
    cluster = helm.cluster
    running = run_share(cluster, "two")
    pods = f"/api/v1/namespaces/{_TENANTS}/pods?dryRun=All"

    def once() -> Answer:
        return cluster.request("POST", pods, share("good"))

    first, trusted = replicas(cluster), certificate(cluster)
    with Hammer(once) as hammer:
        hammer.wait_for(30)
        helm.upgrade(_OTHER_SETTINGS)
        hammer.wait_for(30)
    second = replicas(cluster)
    helm.rollback()
    third = replicas(cluster)
    assert [answer.body for answer in hammer.answers if not answer.ok] == []
    assert not first & second and not second & third
    assert certificate(cluster) == trusted
    assert runs_of(get_pod(cluster, _TENANTS, "two")) == runs_of(running)
    ask_the_extender(cluster)
    run_share(cluster, "three")


def replicas(cluster: Cluster) -> set[str]:
    return {each["metadata"]["uid"] for each in own_pods(cluster, names.ADMISSION_SERVICE)}


def test_removed_it_leaves_kinds_quotas_and_running_pods_and_nothing_else(
    helm: Helm, before: Mapping[str, str]
) -> None:
    """The last one: Halfcard is gone afterwards."""
    cluster = helm.cluster
    allow_some(cluster)
    kept = run_share(cluster, "kept")
    helm.uninstall()

    def left() -> list[str]:
        return sorted(
            title for title in dump(cluster).keys() - before.keys() if not title.startswith(f"Pod {_TENANTS} ")
        )

    stays = [
        f"APIService v1alpha1.{names.OWN_DOMAIN}",
        f"ConfigMap {names.NAMESPACE} gpuquota.{_TENANTS}.gpu",
        f"ConfigMap {names.NAMESPACE} kube-root-ca.crt",
        f"CustomResourceDefinition clustergpuquotas.{names.OWN_DOMAIN}",
        f"CustomResourceDefinition gpuquotas.{names.OWN_DOMAIN}",
        f"GpuQuota {_TENANTS} gpu",
        f"Namespace {names.NAMESPACE}",
        f"ServiceAccount {names.NAMESPACE} default",
    ]
    cluster.wait_until(lambda: left() == stays, what="only that to stay", seconds=60, details=lambda: "\n".join(left()))
    after = dump(cluster)
    assert {title: uid for title, uid in before.items() if after.get(title) != uid} == {}
    assert get_pod(cluster, _TENANTS, "waits")["spec"]["schedulingGates"] == [{"name": _THEIR_GATE}]
    assert runs_of(get_pod(cluster, _TENANTS, "kept")) == runs_of(kept)
    assert get_pod(cluster, _TENANTS, "kept")["metadata"]["annotations"] == kept["metadata"]["annotations"]


def allow_some(cluster: Cluster) -> None:
    """Returns once the quota is counted: before that, nobody is let in."""
    item = quota("gpu", {"hard": {"cards": 4, "cores": 400}}, _TENANTS)
    done = cluster.kubectl("create", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr

    def conditions() -> dict[str, str]:
        status = cluster.request("GET", path_of(item)).must().get("status", {})
        return {each["type"]: each["status"] for each in status.get("conditions", [])}

    cluster.wait_until(lambda: conditions().get("Ready") == "True", what="the quota to be counted")
