"""Upgrades an earlier version to this checkout on a real node, while pods are created: `make test-upgrade`.

Its file name keeps it out of `make test-node`: it builds a second image, and only a release needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from devcluster.services.quota_installation import path_of, quota
from halfcard import names
from tests.builders import pod
from tests.cluster.hammer import Hammer
from tests.cluster.helm import Helm, load_image
from tests.cluster.load import NO_RATE_LIMITS
from tests.cluster.pods import create_pod, get_pod, wait_for_phase
from tests.cluster.site import cards_of

from . import earlier_version
from .container_report import reporting
from .gpu_churn import container_ids
from .halfcard_pods import configure_scheduler, halfcard_pods
from .pod_load import PodLoad, failures

_VALUES: Final[dict[str, Any]] = {"agent": {"arguments": ["--fake-gpus=2xT4"]}, "image": {"pullPolicy": "Never"}}
_EARLIER: Final[dict[str, Any]] = {**_VALUES, "image": {"pullPolicy": "Never", "tag": earlier_version.TAG}}
_TEAM: Final = "team-a"
_BUDGET: Final = quota("gpu", {"hard": {"shares": 100_000, "cores": 1_000_000}}, _TEAM)
_SHARE: Final = {"core": 30, "memory": 10}
_REAL_EVERY: Final = 20  # a ledger holds a thousand reservations, and none is committed while its leader is replaced


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """A cluster with the earlier version, a quota and a running pod; the node has both images."""
    checkout = earlier_version.export_sources(earlier_version.revision(), tmp_path_factory.mktemp("earlier"))
    with Cluster(flags=NO_RATE_LIMITS) as cluster, RealNode(cluster, "gpu-a") as node:
        earlier_version.load_image(node, checkout)
        load_image(node)
        cluster.create_namespace(_TEAM)
        cluster.client.merge(
            cluster.admin, "/api/v1/nodes/gpu-a", {"metadata": {"labels": {names.AGENT_LABEL: "true"}}}
        )
        helm = Helm(cluster)
        helm.install(_EARLIER, checkout)
        configure_scheduler(cluster)
        create_quota(cluster)
        run_share(cluster, "before")
        yield helm


def create_quota(cluster: Cluster) -> None:
    """Creates the quota and waits until it is counted; before that, it refuses all pods."""
    done = cluster.kubectl("create", "-f-", stdin=json.dumps(_BUDGET))
    assert done.code == 0, done.stderr
    cluster.wait_until(lambda: budget(cluster).get("shares", "").startswith("0/"), what="the quota to be counted")


def budget(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.request("GET", path_of(_BUDGET)).must().get("status", {})
    return found


def run_share(cluster: Cluster, name: str) -> Object:
    created = create_pod(cluster, _TEAM, reporting(pod(name).asks(**_SHARE)).manifest)
    running: Object = wait_for_phase(cluster, _TEAM, created, "Running")
    return running


def state_of_running_pod(cluster: Cluster) -> tuple[Any, ...]:
    """Uid, container ids, annotations and spec of the pod that ran before the upgrade."""
    found = get_pod(cluster, _TEAM, "before")
    return found["metadata"]["uid"], container_ids(found), found["metadata"]["annotations"], found["spec"]


def halfcard_images(cluster: Cluster) -> dict[str, str]:
    """The image of each of Halfcard's pods, by uid."""
    found = (each for name in _COMPONENTS for each in halfcard_pods(cluster, name))
    return {each["metadata"]["uid"]: each["spec"]["containers"][0]["image"] for each in found}


_COMPONENTS: Final = tuple(f"halfcard-{each}" for each in ("admission", "agent", "certs", "extender", "quota"))


def test_an_upgrade_fails_no_create_and_replaces_only_halfcards_own_pods(helm: Helm) -> None:
    cluster = helm.cluster
    before, first = state_of_running_pod(cluster), halfcard_images(cluster)
    with Hammer(PodLoad(cluster, _TEAM, real_every=_REAL_EVERY).create) as hammer:
        hammer.wait_for(50)
        helm.upgrade(_VALUES)
        hammer.wait_for(50)
    assert failures(hammer.answers) == {}
    assert state_of_running_pod(cluster) == before
    second = halfcard_images(cluster)
    assert {image.rpartition(":")[2] for image in first.values()} == {earlier_version.TAG}
    assert earlier_version.TAG not in {image.rpartition(":")[2] for image in second.values()}
    assert len(second) == len(first)


def test_data_of_the_earlier_version_can_still_be_read(helm: Helm) -> None:
    """Quota, ledger, certificates and records: a new pod is placed beside the one that ran before."""
    cluster = helm.cluster
    configure_scheduler(cluster)
    cluster.wait_until(
        lambda: budget(cluster).get("shares", "").startswith("1/"), what="only the pod from before to be counted"
    )
    assert cards_of(run_share(cluster, "after")) == cards_of(get_pod(cluster, _TEAM, "before"))
    cluster.wait_until(lambda: budget(cluster).get("shares", "").startswith("2/"), what="both pods to be counted")
