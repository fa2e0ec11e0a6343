"""What the API server's ResourceQuota plugin says of a pod is what we say, for hundreds of pods in all dialects.

A quota of 0 refuses a dry-run, and the refusal names the charge. Our webhooks are away here: they would answer first.
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

Wish = dict[str, Amount]

DIALECTS: Final[dict[str, list[Wish]]] = {
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


def some_pod(chance: random.Random) -> PodBuilder:
    """Up to three containers of each sort, most of which ask for something, in the words of one dialect or two."""
    spoken = chance.sample(sorted(DIALECTS.keys() - {"nvidia"}), k=chance.choice([1, 1, 2]))
    if chance.random() < 0.2:
        spoken = ["nvidia"]
    wishes: list[Wish] = [*(wish for dialect in spoken for wish in DIALECTS[dialect]), {}]
    built = pod(f"p{chance.randrange(10**9)}").asks(**chance.choice(wishes[:-1]))
    for _ in range(chance.randrange(3)):
        built = built.asks(**chance.choice(wishes))
    for _ in range(chance.randrange(4)):
        step = chance.choice([built.init, built.sidecar])
        built = step(**chance.choice(wishes))
    return built


def repaired(item: Object) -> Object:
    """As the webhook's decision leaves it."""
    context = ReviewContext(POLICY, NOTHING_KNOWN, "tenant", "alice", ReviewStage.PROPOSED)
    decided = mutate_pod(msgspec.convert(item, Pod), context)
    assert decided.allowed, decided.message
    left: Object = apply(item, decided.changes)
    return left


def expected(item: Object) -> dict[str, str]:
    """What the repaired pod costs."""
    cost = pod_cost(msgspec.convert(item, Pod), RESOURCES)
    return {name: str(amount) for name, amount in cost.items() if amount.nanos}


def charged(message: str) -> dict[str, str]:
    found = _REQUESTED.search(message)
    assert found, message
    pairs = (pair.partition("=") for pair in found[1].split(","))
    return {key.removeprefix("requests."): amount for key, _, amount in pairs}


@pytest.fixture(scope="module")
def alone(webhook: Installation) -> Iterator[Installation]:
    """The API server without us."""
    with webhook.unregistered():
        yield webhook


def in_force(alone: Installation, space: str, quota: Object) -> ResourceQuota:
    """As it is once Kubernetes has counted it."""
    path = f"{collection(space, quota)}/{quota['metadata']['name']}"
    alone.create(space, quota).must()

    def read() -> ResourceQuota:
        return msgspec.convert(alone.cluster.request("GET", path).must(), ResourceQuota)

    alone.cluster.wait_until(
        lambda: read().enforced.keys() == quota["spec"]["hard"].keys(), what="the quota to be counted"
    )
    return read()


@pytest.fixture
def nothing_left(alone: Installation, space: str) -> str:
    """A namespace whose quota of every GPU resource is 0."""
    in_force(alone, space, resource_quota("none", {f"requests.{resource}": "0" for resource in sorted(RESOURCES)}))
    probe = complete(pod("probe").asks(gpu=1))
    alone.cluster.wait_until(
        lambda: "exceeded quota" in alone.create(space, probe, dry_run=True).body.get("message", ""),
        what="the quota to be in force",
    )
    return space


def test_every_generated_pod_is_charged_what_halfcard_calculates(alone: Installation, nothing_left: str) -> None:
    chance = random.Random(SEED)
    wrong = []
    for _ in range(PODS):
        item = repaired(complete(some_pod(chance)))
        said = charged(alone.create(nothing_left, item, dry_run=True).body["message"])
        if said != expected(item):
            wrong.append((item["spec"], said, expected(item)))
    assert wrong == []


def test_the_generated_pods_are_of_every_kind() -> None:
    """A generator that has dried up would prove nothing."""
    chance = random.Random(SEED)
    pods = [complete(some_pod(chance)) for _ in range(PODS)]
    inits = [stage for item in pods for stage in item["spec"].get("initContainers", [])]
    assert {resource for item in pods for resource in expected(repaired(item))} == set(WORDS.values())
    sidecars = sum("restartPolicy" in stage for stage in inits)
    assert min(sidecars, len(inits) - sidecars) > 50


OVERHEAD: Final = {names.VCUDA_CORE: "5"}
"""A RuntimeClass may charge for what its sandbox needs."""


def test_the_overhead_of_a_runtime_class_is_charged(alone: Installation, nothing_left: str) -> None:
    runtime = {"metadata": {"name": "boxed"}, "handler": "boxed", "overhead": {"podFixed": OVERHEAD}}
    alone.cluster.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime).must()
    item = repaired(complete(pod("boxed").asks(core="30", memory="20").specified(runtimeClassName="boxed")))
    alone.cluster.wait_until(
        lambda: "exceeded" in alone.create(nothing_left, item, dry_run=True).body["message"], what="the class"
    )
    said = charged(alone.create(nothing_left, item, dry_run=True).body["message"])
    item["spec"]["overhead"] = OVERHEAD
    assert said == expected(item)


# --- whom a quota counts ----------------------------------------------------------------------------------------------

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
JUDGED: Final = 60
_FAR: Final = {"topologyKey": "zone", "namespaceSelector": {}}
_NEAR: Final = {"topologyKey": "zone", "labelSelector": {}}


def varied_pod(chance: random.Random) -> Object:
    """Of every sort that a scope tells apart."""
    fields: dict[str, Any] = {}
    if chance.random() < 0.5:
        fields["activeDeadlineSeconds"] = chance.choice([1, 60])
    if chance.random() < 0.5:
        fields["priorityClassName"] = CLASS
    if chance.random() < 0.5:
        sort = chance.choice(["podAffinity", "podAntiAffinity"])
        term = {"requiredDuringSchedulingIgnoredDuringExecution": [chance.choice([_FAR, _NEAR])]}
        fields["affinity"] = {sort: term}
    asked = pod(f"p{chance.randrange(10**9)}").asks(core=chance.choice([10, 30, 60]), memory=4).specified(**fields)
    item = complete(asked)
    if chance.random() < 0.5:
        item["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = "1"
    return repaired(item)


def test_every_quota_with_scopes_refuses_the_same_pods_as_halfcard(alone: Installation, space: str) -> None:
    """One namespace for each, because the plugin names only the first that is short."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    alone.cluster.request("POST", path, {"metadata": {"name": CLASS}, "value": 7}).must()
    spaces = [alone.cluster.create_namespace(f"{space}-{at}") for at in range(len(QUOTAS))]
    quotas = {there: in_force(alone, there, quota) for there, quota in zip(spaces, QUOTAS, strict=True)}
    chance, verdicts = random.Random(SEED), set()
    for _ in range(JUDGED):
        item = varied_pod(chance)
        seen = msgspec.convert(alone.create(space, item, dry_run=True).must(), QuotaPod)
        for there, quota in quotas.items():
            agree(alone, there, item, our_words(quota, seen))
            verdicts.add((there, bool(our_words(quota, seen))))
    assert verdicts == {(there, said) for there in spaces for said in (False, True)}, "a verdict that was never given"


def our_words(quota: ResourceQuota, pod: QuotaPod) -> str:
    """Without the namespace, and without what we say more than the plugin."""
    short = exceeded_by([quota] if quota.counts(pod) else [], pod_cost(pod, RESOURCES))
    said = exceeded(short[0], {}).partition(" (")[0] if short else ""
    return said.replace(f"{quota.meta.namespace}/", "")


def their_words(alone: Installation, space: str, item: Object) -> str:
    message: str = alone.create(space, item, dry_run=True).body.get("message", "")
    return message.partition("is forbidden: ")[2]


def agree(alone: Installation, space: str, item: Object, ours: str) -> None:
    """The plugin may not have heard of the quota yet."""
    alone.cluster.wait_until(
        lambda: their_words(alone, space, item) == ours,
        what="the plugin to say as we do",
        details=lambda: f"{item['spec']}\nours: {ours}\ntheirs: {their_words(alone, space, item)}",
    )
