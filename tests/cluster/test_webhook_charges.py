"""What the ResourceQuota plugin charges for a pod is what our cost function says, for hundreds of pods in all dialects.

A quota of 0 refuses a dry-run, and the refusal names the charge.
"""

from __future__ import annotations

import random
import re
from typing import Final

import msgspec
import pytest

from admission.policy import Policy
from admission.review import mutate_pod
from admission.subject import Circumstances, Stage
from halfcard import names
from halfcard.cluster import NOTHING_KNOWN
from halfcard.cost import pod_cost
from halfcard.patches import apply
from halfcard.pods import Pod
from tests.builders import WORDS, Amount, PodBuilder, pod

from .installation import Installation
from .manifests import complete, resource_quota
from .objects import Object

POLICY: Final = Policy()
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


def expected(item: Object) -> dict[str, str]:
    """What the pod costs as the webhook's decision leaves it."""
    around = Circumstances(POLICY, NOTHING_KNOWN, "tenant", "alice", Stage.PROPOSED)
    decided = mutate_pod(msgspec.convert(item, Pod), around)
    assert decided.allowed, decided.message
    repaired = msgspec.convert(apply(item, decided.changes), Pod)
    return {name: str(amount) for name, amount in pod_cost(repaired, RESOURCES).items() if amount.nanos}


def charged(message: str) -> dict[str, str]:
    found = _REQUESTED.search(message)
    assert found, message
    pairs = (pair.partition("=") for pair in found[1].split(","))
    return {key.removeprefix("requests."): amount for key, _, amount in pairs}


@pytest.fixture
def nothing_left(webhook: Installation, space: str) -> str:
    """A namespace whose quota of every GPU resource is 0."""
    quota = resource_quota("none", {f"requests.{resource}": "0" for resource in sorted(RESOURCES)})
    webhook.create(space, quota).must()
    probe = complete(pod("probe").asks(gpu=1))

    def refused() -> bool:
        return "exceeded quota" in webhook.create(space, probe, dry_run=True).body.get("message", "")

    webhook.cluster.wait_until(refused, what="the quota to be in force")
    return space


def test_every_generated_pod_is_charged_what_we_say(webhook: Installation, nothing_left: str) -> None:
    chance = random.Random(SEED)
    wrong = []
    for _ in range(PODS):
        item = complete(some_pod(chance))
        said = charged(webhook.create(nothing_left, item, dry_run=True).body["message"])
        if said != expected(item):
            wrong.append((item["spec"], said, expected(item)))
    assert wrong == []


def test_the_generated_pods_are_of_every_kind() -> None:
    """A generator that has dried up would prove nothing."""
    chance = random.Random(SEED)
    pods = [complete(some_pod(chance)) for _ in range(PODS)]
    inits = [stage for item in pods for stage in item["spec"].get("initContainers", [])]
    assert {resource for item in pods for resource in expected(item)} == set(WORDS.values())
    sidecars = sum("restartPolicy" in stage for stage in inits)
    assert min(sidecars, len(inits) - sidecars) > 50


OVERHEAD: Final = {names.VCUDA_CORE: "5"}
"""A RuntimeClass may charge for what its sandbox needs."""


def test_the_overhead_of_a_runtime_class_is_charged(webhook: Installation, nothing_left: str) -> None:
    runtime = {"metadata": {"name": "boxed"}, "handler": "boxed", "overhead": {"podFixed": OVERHEAD}}
    webhook.cluster.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime).must()
    item = complete(pod("boxed").asks(core="30", memory="20").specified(runtimeClassName="boxed"))
    webhook.cluster.wait_until(
        lambda: "exceeded" in webhook.create(nothing_left, item, dry_run=True).body["message"], what="the class"
    )
    said = charged(webhook.create(nothing_left, item, dry_run=True).body["message"])
    with_overhead = complete(pod("boxed").asks(core="30", memory="20").specified(overhead=OVERHEAD))
    assert said == expected(with_overhead)
