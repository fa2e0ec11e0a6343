"""Derived resources, which a plain ResourceQuota counts, on a real API server and with a real scheduler."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
import pytest

from devcluster.cluster import Cluster
from devcluster.objects import Object
from devcluster.services.installation import Installation
from devcluster.services.quota_installation import refusal
from devcluster.services.scheduling import schedule_by, shipped
from halfcard import names
from halfcard.claims import CARDS, SHARES
from halfcard.dialects import Dialects
from halfcard.placing.demand import needs_of
from halfcard.pod.requests import read_pod
from halfcard.pod.spec import Pod
from halfcard.quota.charge import charge
from tests.builders import pod

from .manifests import complete, resource_quota, resources, share, workload
from .test_webhook_charges import charged, some_pod

DCARDS, DSHARES = names.DERIVED_CARDS, names.DERIVED_SHARES
COUNTED: Final = {CARDS: DCARDS, SHARES: DSHARES}
SETTINGS: Final = {"derived_resources": {"schedulers": [names.DEFAULT_SCHEDULER], "models": ["A100"]}}
PODS: Final = 150


@pytest.fixture(scope="module")
def counting() -> Iterator[Installation]:
    """A cluster where the webhook adds derived resources and the scheduler has the shipped profile."""
    with Cluster() as cluster:
        profile = {**shipped("halfcard.yaml", url=None, tls={}), "extenders": []}
        schedule_by(cluster, profile)
        webhook = Installation(cluster, settings=SETTINGS)
        webhook.add_replica()
        webhook.register()
        yield webhook


@pytest.fixture
def team(counting: Installation, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace; its pods are deleted afterwards, or they would take the cards of another test's node."""
    team = counting.cluster.create_namespace(f"team-{abs(hash(request.node.name)) % 10**8}")
    yield team
    for collection in (f"/apis/apps/v1/namespaces/{team}/replicasets", f"/api/v1/namespaces/{team}/pods"):
        counting.cluster.request("DELETE", collection, {"gracePeriodSeconds": 0}).must()


def whole(name: str, cards: int = 1) -> Object:
    return complete(pod(name).asks(gpu=cards))


def allow(counting: Installation, team: str, **hard: int) -> None:
    """Creates a quota and waits until Kubernetes enforces it."""
    keys = {f"requests.{COUNTED[key]}": str(amount) for key, amount in hard.items()}
    counting.create(team, resource_quota("gpu", keys)).must()
    counting.cluster.wait_until(
        lambda: counting.get(team, "resourcequota", "gpu")["status"].get("used", {}).keys() == keys.keys(),
        what="the quota to be counted",
    )


def used(counting: Installation, team: str) -> dict[str, str]:
    found: dict[str, str] = counting.get(team, "resourcequota", "gpu")["status"]["used"]
    return found


def test_a_plain_quota_of_cards_is_exact_in_a_burst(counting: Installation, team: str) -> None:
    allow(counting, team, cards=5)
    with ThreadPoolExecutor(16) as pool:
        answers = [*pool.map(lambda number: counting.create(team, whole(f"p{number}")), range(40))]
    assert sum(answer.ok for answer in answers) == 5
    assert used(counting, team) == {f"requests.{DCARDS}": "5"}
    message = refusal(counting.create(team, whole("late")))
    assert f"requested: requests.{DCARDS}=1, used: requests.{DCARDS}=5, limited: requests.{DCARDS}=5" in message
    assert "(1 more needed: 1 card asked, 0 cards free)" in message


def test_native_quota_charges_what_a_gpu_quota_counts(counting: Installation, team: str) -> None:
    """Compares pods of all dialects with init containers and sidecars."""
    allow(counting, team, cards=0, shares=0)
    rng, dialects, wrong = random.Random(7), Dialects(), []
    counted: set[str] = set()
    with counting.without("validating"):
        for _ in range(PODS):
            item = complete(some_pod(rng))
            needs = needs_of(read_pod(msgspec.convert(item, Pod), dialects))[1]
            expected = {COUNTED[key]: str(amount) for key, amount in charge(needs).items() if key in COUNTED}
            charges = charged(counting.create(team, item, dry_run=True).body["message"])
            counted |= expected.keys()
            if charges != expected:
                wrong.append((item["spec"], charges, expected))
    assert wrong == []
    assert counted == {DCARDS, DSHARES}


def test_a_pod_that_names_a_model_is_counted_for_that_model(counting: Installation, team: str) -> None:
    pinned = complete(pod("p").asks(gpu=2).annotated({names.ASK_MODEL: "A100-SXM4-80GB"}))
    assert resources(counting.create(team, pinned, dry_run=True).must())["requests"] == {
        names.NVIDIA_GPU: "2",
        DCARDS: "2",
        f"{DCARDS}.A100": "2",
    }


def test_the_same_file_applies_twice_and_a_stored_pod_can_be_changed(counting: Installation, team: str) -> None:
    for _ in range(2):
        done = counting.kubectl(team, "apply", "-f-", item=share("p"))
        assert done.code == 0, done.stderr
    assert counting.kubectl(team, "apply", "--server-side", "--force-conflicts", "-f-", item=share("p")).code == 0
    assert counting.kubectl(team, "label", "pod", "p", "a=b").code == 0
    stored = counting.get(team, "pod", "p")
    assert resources(stored)["requests"][DSHARES] == resources(stored)["limits"][DSHARES] == "1"
    bare = json.loads(json.dumps(stored))
    for side in ("limits", "requests"):
        del bare["spec"]["containers"][0]["resources"][side][DSHARES]
    del bare["metadata"]["resourceVersion"]  # the scheduler may have written since
    done = counting.kubectl(team, "replace", "-f-", item=bare)
    assert done.code == 0, done.stderr
    assert resources(counting.get(team, "pod", "p"))["requests"][DSHARES] == "1"


def test_resizing_cpu_keeps_the_derived_resources(counting: Installation, team: str) -> None:
    item = share("p")
    item["spec"]["containers"][0]["resources"] |= {"requests": {"cpu": "1"}}
    counting.create(team, item).must()
    path = f"/api/v1/namespaces/{team}/pods/p/resize"
    found = counting.get(team, "pod", "p")
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"
    counting.cluster.request("PUT", path, found).must()
    after = resources(counting.get(team, "pod", "p"))["requests"]
    assert (after["cpu"], after[DSHARES]) == ("500m", "1")


def test_templates_are_left_alone_and_their_pods_are_counted(counting: Installation, team: str) -> None:
    allow(counting, team, shares=2)
    item = workload("ReplicaSet", "r", share("p"))
    item["spec"]["replicas"] = 3
    stored = counting.create(team, item).must()
    assert names.DERIVED_GROUP not in json.dumps(stored)
    counting.cluster.wait_until(
        lambda: used(counting, team) == {f"requests.{DSHARES}": "2"}, what="two pods to be counted"
    )
    counting.cluster.wait_until(
        lambda: any(
            each["type"] == "ReplicaFailure" and f"requests.{DSHARES}=1" in each["message"]
            for each in counting.get(team, "replicaset", "r")["status"].get("conditions", [])
        ),
        what="the third to be refused",
    )


def test_a_pod_with_missing_or_wrong_derived_resources_is_refused(counting: Installation, team: str) -> None:
    """The mutating webhook fails open."""
    with counting.without("mutating"):
        without = counting.create(team, complete(pod("p").container(limits={names.NVIDIA_GPU: 1})))
        assert f"add {DCARDS}: 1 [HC016]" in refusal(without)
        less = complete(pod("p").container(limits={names.NVIDIA_GPU: 2, DCARDS: 1}))
        assert "use 2, or leave it to the webhook [HC016]" in refusal(counting.create(team, less))
        idle = complete(pod("p").container(limits={DSHARES: 1}))
        assert "remove it, or leave it to the webhook [HC016]" in refusal(counting.create(team, idle))


def condition(counting: Installation, team: str, name: str) -> dict[str, Any]:
    found = counting.get(team, "pod", name)["status"].get("conditions", [])
    return next((each for each in found if each["type"] == "PodScheduled"), {})


def test_only_the_shipped_scheduler_profile_ignores_derived_resources(counting: Installation, team: str) -> None:
    counting.cluster.add_node("gpu-node", {names.NVIDIA_GPU: "4"})
    counting.create(team, whole("shipped")).must()
    counting.cluster.wait_until(
        lambda: condition(counting, team, "shipped").get("status") == "True", what="the pod to have a node"
    )
    shipped_profile = {**shipped("halfcard.yaml", url=None, tls={}), "extenders": []}
    plain = {**shipped_profile, "profiles": [{"schedulerName": names.DEFAULT_SCHEDULER}]}
    schedule_by(counting.cluster, plain)
    try:
        counting.create(team, whole("plain")).must()
        counting.cluster.wait_until(
            lambda: f"Insufficient {DCARDS}" in condition(counting, team, "plain").get("message", ""),
            what="the scheduler to report the missing resource",
        )
    finally:
        schedule_by(counting.cluster, shipped_profile)
