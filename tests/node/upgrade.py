"""From an earlier version to the one of this checkout, on a real node, while pods are created: `make test-upgrade`.

Its name keeps it out of `make test-node`: it builds a second image, and a release is what it is for.
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

from . import earlier
from .gpu_churn import runs_of
from .own_pods import ask_the_extender, own_pods
from .tenants import Tenants, failures
from .told import telling

_VALUES: Final[dict[str, Any]] = {"agent": {"arguments": ["--fake-gpus=2xT4"]}, "image": {"pullPolicy": "Never"}}
_EARLIER: Final[dict[str, Any]] = {**_VALUES, "image": {"pullPolicy": "Never", "tag": earlier.TAG}}
_TENANTS: Final = "team-a"
_BUDGET: Final = quota("gpu", {"hard": {"shares": 100_000, "cores": 1_000_000}}, _TENANTS)
_SHARE: Final = {"core": 30, "memory": 10}
_REAL: Final = 20  # a ledger reserves for a thousand at once, and is not counted while its leader is replaced


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """Beside the earlier version, with a quota and a pod that runs; both images are on the node."""
    checkout = earlier.check_out(earlier.revision(), tmp_path_factory.mktemp("earlier"))
    with Cluster(flags=NO_RATE_LIMITS) as cluster, RealNode(cluster, "gpu-a") as node:
        earlier.load_image(node, checkout)
        load_image(node)
        cluster.create_namespace(_TENANTS)
        cluster.client.merge(
            cluster.admin, "/api/v1/nodes/gpu-a", {"metadata": {"labels": {names.AGENT_LABEL: "true"}}}
        )
        helm = Helm(cluster)
        helm.install(_EARLIER, checkout)
        ask_the_extender(cluster)
        allow(cluster)
        run_share(cluster, "before")
        yield helm


def allow(cluster: Cluster) -> None:
    """Returns once the quota is counted: before that, nobody is let in."""
    done = cluster.kubectl("create", "-f-", stdin=json.dumps(_BUDGET))
    assert done.code == 0, done.stderr
    cluster.wait_until(lambda: budget(cluster).get("shares", "").startswith("0/"), what="the quota to be counted")


def budget(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.request("GET", path_of(_BUDGET)).must().get("status", {})
    return found


def run_share(cluster: Cluster, name: str) -> Object:
    created = create_pod(cluster, _TENANTS, telling(pod(name).asks(**_SHARE)).manifest)
    running: Object = wait_for_phase(cluster, _TENANTS, created, "Running")
    return running


def kept(cluster: Cluster) -> tuple[Any, ...]:
    """Of the pod that ran before: who it is, which containers it has, what was recorded for it."""
    found = get_pod(cluster, _TENANTS, "before")
    return found["metadata"]["uid"], runs_of(found), found["metadata"]["annotations"], found["spec"]


def processes(cluster: Cluster) -> dict[str, str]:
    """Halfcard's own pods, and the image of each."""
    found = (each for name in _COMPONENTS for each in own_pods(cluster, name))
    return {each["metadata"]["uid"]: each["spec"]["containers"][0]["image"] for each in found}


_COMPONENTS: Final = tuple(f"halfcard-{each}" for each in ("admission", "agent", "certs", "extender", "quota"))


def test_an_upgrade_fails_no_create_touches_no_pod_and_leaves_nothing_of_before(helm: Helm) -> None:
    cluster = helm.cluster
    before, first = kept(cluster), processes(cluster)
    with Hammer(Tenants(cluster, _TENANTS, real_every=_REAL).create) as hammer:
        hammer.wait_for(50)
        helm.upgrade(_VALUES)
        hammer.wait_for(50)
    assert failures(hammer.answers) == {}
    assert kept(cluster) == before
    second = processes(cluster)
    assert {image.rpartition(":")[2] for image in first.values()} == {earlier.TAG}
    assert earlier.TAG not in {image.rpartition(":")[2] for image in second.values()}
    assert len(second) == len(first)


def test_what_the_earlier_version_has_written_is_read_on(helm: Helm) -> None:
    """Quota, ledger, certificates and records: one pod runs, and the next finds the card that is left."""
    cluster = helm.cluster
    ask_the_extender(cluster)
    cluster.wait_until(lambda: budget(cluster).get("shares", "").startswith("1/"), what="the pod alone to be counted")
    assert cards_of(run_share(cluster, "after")) == cards_of(get_pod(cluster, _TENANTS, "before"))
    cluster.wait_until(lambda: budget(cluster).get("shares", "").startswith("2/"), what="both pods to be counted")
