"""Halfcard calculates the same charges as the API server's ResourceQuota plugin, for hundreds of pods in all dialects.

A quota of 0 refuses a dry run, and the refusal names the charge. The webhooks, which would refuse first, are not
registered.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest

from admission.policy import AdmissionPolicy
from admission.review import mutate_pod
from admission.rules.subject import ReviewContext, ReviewStage
from devcluster.objects import Object
from devcluster.services.installation import Installation, collection
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.patches import apply
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.spec import Pod
from halfcard.quota.native_messages import exceeded
from halfcard.quota.native_quota import ResourceQuota, exceeded_by
from halfcard.quota.native_scopes import QuotaPod
from tests.builders import WORDS, Amount, PodBuilder, pod

from .manifests import complete, resource_quota

POLICY: Final = AdmissionPolicy()
RESOURCES: Final = POLICY.dialects.resources
PODS: Final = 300
SEED: Final = 20240607
_REQUESTED: Final = re.compile(r"requested: ([^ ]*), used: ")

Requests = dict[str, Amount]

DIALECTS: Final[dict[str, list[Requests]]] = {
    "tencent": [
        {"core": "0.3", "memory": "5Gi"},
        {"core": 30, "memory": 20},
        {"core": "700m", "memory": "1000Mi"},
        {"core": "200"},
        {"core": "1e2", "memory": "64"},
    ],
    "tuya": [{"sgpu": 1}, {"sgpu": "2"}],
    "tuya-vcuda": [{"tuya_core": "0.5", "tuya_memory": "8Gi"}, {"tuya_memory": "3Gi"}],
    "aliyun": [{"gpu_mem": 3}, {"gpu_mem": "16"}],
    "volcano": [{"gpu_memory": 2048}, {"gpu_number": "2"}],
    "nvidia": [{"gpu": 1}, {"gpu": "4"}, {"gpu_shared": 2}],
    "hami": [{"gpu": 2, "gpumem": 3000}, {"gpumem": "3k", "gpucores": 30}, {"gpu": 1, "gpumem_percentage": 50}],
}


def some_pod(rng: random.Random) -> PodBuilder:
    """Returns a pod with up to three containers of each kind, with requests of one or two dialects."""
    chosen = rng.sample(sorted(DIALECTS.keys() - {"nvidia"}), k=rng.choice([1, 1, 2]))
    if rng.random() < 0.2:
        chosen = ["nvidia"]
    requests: list[Requests] = [*(each for dialect in chosen for each in DIALECTS[dialect]), {}]
    built = pod(f"p{rng.randrange(10**9)}").asks(**rng.choice(requests[:-1]))
    for _ in range(rng.randrange(3)):
        built = built.asks(**rng.choice(requests))
    for _ in range(rng.randrange(4)):
        step = rng.choice([built.init, built.sidecar])
        built = step(**rng.choice(requests))
    return built


def repaired(item: Object) -> Object:
    """Returns the pod after the changes of the webhook."""
    context = ReviewContext(POLICY, NOTHING_KNOWN, "tenant", "alice", ReviewStage.PROPOSED)
    decided = mutate_pod(msgspec.convert(item, Pod), context)
    assert decided.allowed, decided.message
    left: Object = apply(item, decided.changes)
    return left


def expected(item: Object) -> dict[str, str]:
    """Returns the charge that Halfcard calculates."""
    cost = pod_cost(msgspec.convert(item, Pod), RESOURCES)
    return {name: str(amount) for name, amount in cost.items() if amount.nanos}


def charged(message: str) -> dict[str, str]:
    found = _REQUESTED.search(message)
    assert found, message
    pairs = (pair.partition("=") for pair in found[1].split(","))
    return {key.removeprefix("requests."): amount for key, _, amount in pairs}


@pytest.fixture(scope="module")
def unregistered(webhook: Installation) -> Iterator[Installation]:
    """The API server without registered webhooks."""
    with webhook.unregistered():
        yield webhook


def in_force(unregistered: Installation, space: str, quota: Object) -> ResourceQuota:
    """Creates a quota, waits until Kubernetes has counted it, and returns it."""
    path = f"{collection(space, quota)}/{quota['metadata']['name']}"
    unregistered.create(space, quota).must()

    def read() -> ResourceQuota:
        return msgspec.convert(unregistered.cluster.request("GET", path).must(), ResourceQuota)

    unregistered.cluster.wait_until(
        lambda: read().enforced.keys() == quota["spec"]["hard"].keys(), what="the quota to be counted"
    )
    return read()


@pytest.fixture
def empty_quotas(unregistered: Installation, space: str) -> str:
    """A namespace whose quota of every GPU resource is 0."""
    in_force(
        unregistered, space, resource_quota("none", {f"requests.{resource}": "0" for resource in sorted(RESOURCES)})
    )
    probe = complete(pod("probe").asks(gpu=1))
    unregistered.cluster.wait_until(
        lambda: "exceeded quota" in unregistered.create(space, probe, dry_run=True).body.get("message", ""),
        what="the quota to be in force",
    )
    return space


def test_every_generated_pod_is_charged_what_halfcard_calculates(unregistered: Installation, empty_quotas: str) -> None:
    rng = random.Random(SEED)
    wrong = []
    for _ in range(PODS):
        item = repaired(complete(some_pod(rng)))
        charges = charged(unregistered.create(empty_quotas, item, dry_run=True).body["message"])
        if charges != expected(item):
            wrong.append((item["spec"], charges, expected(item)))
    assert wrong == []


def test_the_generated_pods_are_of_every_kind() -> None:
    """Without enough variety the test above would prove nothing."""
    rng = random.Random(SEED)
    pods = [complete(some_pod(rng)) for _ in range(PODS)]
    inits = [stage for item in pods for stage in item["spec"].get("initContainers", [])]
    assert {resource for item in pods for resource in expected(repaired(item))} == set(WORDS.values())
    sidecars = sum("restartPolicy" in stage for stage in inits)
    assert min(sidecars, len(inits) - sidecars) > 50


OVERHEAD: Final = {names.VCUDA_CORE: "5"}
"""What a RuntimeClass adds to the requests of a pod."""


def test_the_overhead_of_a_runtime_class_is_charged(unregistered: Installation, empty_quotas: str) -> None:
    runtime = {"metadata": {"name": "boxed"}, "handler": "boxed", "overhead": {"podFixed": OVERHEAD}}
    unregistered.cluster.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime).must()
    item = repaired(complete(pod("boxed").asks(core="30", memory="20").specified(runtimeClassName="boxed")))
    unregistered.cluster.wait_until(
        lambda: "exceeded" in unregistered.create(empty_quotas, item, dry_run=True).body["message"],
        what="the RuntimeClass to be in force",
    )
    charges = charged(unregistered.create(empty_quotas, item, dry_run=True).body["message"])
    item["spec"]["overhead"] = OVERHEAD
    assert charges == expected(item)


# --- scopes of a quota ------------------------------------------------------------------------------------------------

CLASS: Final = "high"


def of_class(operator: str, *values: str) -> dict[str, Any]:
    return {"scopeName": "PriorityClass", "operator": operator, **({"values": [*values]} if values else {})}


def scoped(name: str, hard: int, *scopes: str, selector: Mapping[str, Any] | None = None) -> Object:
    quota = resource_quota(name, {f"requests.{names.VCUDA_CORE}": str(hard)})
    quota["spec"] |= {"scopes": [*scopes]} if scopes else {}
    quota["spec"] |= {"scopeSelector": {"matchExpressions": [selector]}} if selector else {}
    return quota


QUOTAS: Final = [
    scoped("all", 50),
    scoped("ending", 0, "Terminating"),
    scoped("staying", 30, "NotTerminating"),
    scoped("best-effort", 0, "BestEffort"),
    scoped("better", 40, "NotBestEffort"),
    scoped("ending-best-effort", 0, "Terminating", "BestEffort"),
    scoped("classy", 20, selector=of_class("Exists")),
    scoped("classless", 20, selector=of_class("DoesNotExist")),
    scoped("high", 0, selector=of_class("In", CLASS, "other")),
    scoped("not-high", 0, selector=of_class("NotIn", CLASS)),
    scoped("far", 0, selector={"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}),
]
SCOPED_PODS: Final = 60
_FAR: Final = {"topologyKey": "zone", "namespaceSelector": {}}
_NEAR: Final = {"topologyKey": "zone", "labelSelector": {}}


def varied_pod(rng: random.Random) -> Object:
    """Returns a random pod; the scopes distinguish all variants."""
    fields: dict[str, Any] = {}
    if rng.random() < 0.5:
        fields["activeDeadlineSeconds"] = rng.choice([1, 60])
    if rng.random() < 0.5:
        fields["priorityClassName"] = CLASS
    if rng.random() < 0.5:
        kind = rng.choice(["podAffinity", "podAntiAffinity"])
        term = {"requiredDuringSchedulingIgnoredDuringExecution": [rng.choice([_FAR, _NEAR])]}
        fields["affinity"] = {kind: term}
    built = pod(f"p{rng.randrange(10**9)}").asks(core=rng.choice([10, 30, 60]), memory=4).specified(**fields)
    item = complete(built)
    if rng.random() < 0.5:
        item["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = "1"
    return repaired(item)


def test_every_quota_with_scopes_refuses_the_same_pods_as_halfcard(unregistered: Installation, space: str) -> None:
    """Each quota has its own namespace, since the plugin names only the first exceeded quota."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    unregistered.cluster.request("POST", path, {"metadata": {"name": CLASS}, "value": 7}).must()
    spaces = [unregistered.cluster.create_namespace(f"{space}-{at}") for at in range(len(QUOTAS))]
    quotas = {
        namespace: in_force(unregistered, namespace, quota) for namespace, quota in zip(spaces, QUOTAS, strict=True)
    }
    rng, verdicts = random.Random(SEED), set()
    for _ in range(SCOPED_PODS):
        item = varied_pod(rng)
        stored = msgspec.convert(unregistered.create(space, item, dry_run=True).must(), QuotaPod)
        for namespace, quota in quotas.items():
            wait_until_equal(unregistered, namespace, item, message_of_halfcard(quota, stored))
            verdicts.add((namespace, bool(message_of_halfcard(quota, stored))))
    assert verdicts == {(namespace, refused) for namespace in spaces for refused in (False, True)}, (
        "a verdict that never occurred"
    )


def message_of_halfcard(quota: ResourceQuota, pod: QuotaPod) -> str:
    """Returns Halfcard's message without namespace and without its additions to the plugin's message."""
    exceeded_quotas = exceeded_by([quota] if quota.counts(pod) else [], pod_cost(pod, RESOURCES))
    message = exceeded(exceeded_quotas[0], {}).partition(" (")[0] if exceeded_quotas else ""
    return message.replace(f"{quota.meta.namespace}/", "")


def message_of_plugin(unregistered: Installation, space: str, item: Object) -> str:
    message: str = unregistered.create(space, item, dry_run=True).body.get("message", "")
    return message.partition("is forbidden: ")[2]


def wait_until_equal(unregistered: Installation, space: str, item: Object, expected_message: str) -> None:
    """Waits until the plugin gives the same message: it may learn of the quota with a delay."""
    unregistered.cluster.wait_until(
        lambda: message_of_plugin(unregistered, space, item) == expected_message,
        what="the plugin to give the same message",
        details=lambda: (
            f"{item['spec']}\nHalfcard: {expected_message}\nKubernetes: {message_of_plugin(unregistered, space, item)}"
        ),
    )
