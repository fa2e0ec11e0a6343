"""The static guard on a real API server without the webhook: it decides as the webhook would."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from admission.registration.static_guard import GUARDED, guard
from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse
from devcluster.objects import Object
from halfcard import names
from halfcard.problems import SHARE_NEEDS_MEMORY
from settings.installation import read_settings
from tests.admission.judging import codes, validate
from tests.builders import WORDS, PodBuilder, amounts, pod
from tests.halfcard.dialects.test_rules import BROKEN, EXAMPLES, KEPT, MIXED

from .manifests import bad, complete

_PODS: Final = "/api/v1/namespaces/default/pods?dryRun=All"
_REGISTRATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
_POLICY: Final = f"{_REGISTRATIONS}/validatingadmissionpolicies/halfcard-guard"
_MARK: Final = "example.com/settings"

REQUESTS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: requests for name, (requests, _) in BROKEN.items()},
    **KEPT,
    **{name: requests for name, (requests, _) in MIXED.items()},
    "bytes": {"core": 30, "memory": "5Gi"},
    "bytes without a suffix": {"core": 30, "memory": 5368709120},
    "few bytes": {"core": 30, "memory": "1Ki"},
    "more memory than can be counted": {"core": 30, "memory": "256Ti"},
    "bytes of which CEL reads an integer": {"core": 30, "memory": "99Ti"},
    "bytes of which CEL reads none": {"core": 30, "memory": "100Ti"},
    "the most that can": {"core": 30, "memory": 1048575},
    "thousands": {"core": 30, "memory": "1k"},
    "more than 32 bits": {"gpu": 2147483648},
    "more than 63 bits": {"gpu": 9223372036854775807},
    "hami without a number of cards": {"gpumem": 3000},
    "hami with no card": {"gpu": 0, "gpumem": 3000},
    "nothing": {},
    "nothing of it": {"core": 0, "memory": 0},
}


AMOUNTS: Final = (0, 1, 30, 99, 100, 101, 150, 200, 1048576, 2147483648, "5Gi", "256Ti", "1Ki")


def vectors() -> dict[str, PodBuilder]:
    """Returns the requests of the unit tests as containers and init containers, pairs of systems, and random pods."""
    single = {name: pod().asks(**requests) for name, requests in REQUESTS.items()}
    init = {f"{name}, by an init container": pod().asks().init(**requests) for name, requests in REQUESTS.items()}
    pairs = {
        f"{one} beside {other}": pod().container(limits=EXAMPLES[one]).container(limits=EXAMPLES[other])
        for one in EXAMPLES
        for other in EXAMPLES
    }
    rng = random.Random(7)
    return {**single, **init, **pairs, **{f"number {number}": random_pod(rng) for number in range(100)}}


def random_pod(rng: random.Random) -> PodBuilder:
    made = pod()
    for _ in range(rng.randint(1, 2)):
        made = made.asks(**{word: rng.choice(AMOUNTS) for word in rng.sample(list(WORDS), rng.randint(1, 3))})
    return made


VECTORS: Final = {name: complete(built) for name, built in vectors().items()}

SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "as shipped": {},
    "NVIDIA's words alone": {"dialects": ["nvidia"]},
    "HAMi without NVIDIA": {"dialects": ["hami", "tencent"]},
    "milder, and with a domain of one's own": {
        "severities": {SHARE_NEEDS_MEMORY.code: "warn"},
        "vcuda_prefixes": [{"prefix": "gpu.example.com", "memory_alone": True}],
    },
}


@pytest.fixture(scope="module")
def guarded(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        cluster.request("DELETE", f"{_REGISTRATIONS}/{kind}/halfcard-guard").must()
    cluster.wait_until(lambda: create(cluster, bad("gone")).ok, what="the guard to be gone")


def install(cluster: Cluster, settings: Mapping[str, Any]) -> AdmissionPolicy:
    """Installs the guard and waits until the API server uses it, which a marked pod shows."""
    policy = policy_of(read_settings(settings))
    mark = json.dumps(settings)
    items = guard(policy)
    expression = f"object.metadata.?annotations[?'{_MARK}'].orValue('') != {json.dumps(mark)}"
    items[0]["spec"]["validations"].append({"expression": expression, "message": "the mark"})
    done = cluster.kubectl("apply", "-f-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert done.code == 0, done.stderr
    marked = complete(pod().container().annotated({_MARK: mark}))
    cluster.wait_until(lambda: "the mark" in str(create(cluster, marked).body), what="the guard to be in force")
    return policy


def create(cluster: Cluster, item: Object) -> ApiResponse:
    return cluster.request("POST", _PODS, item)


def refusal(cluster: Cluster, item: Object) -> str:
    """Returns the code of the rule or another message; empty if the pod is admitted."""
    answer = create(cluster, item)
    message = "" if answer.ok else answer.body["message"]
    return "".join(re.findall(r"denied request: .*\[(HC\d+)\]$", message)) or message


def webhook_codes(item: Object, policy: AdmissionPolicy) -> list[str]:
    """Returns the codes of the validating webhook, which gets requests as well as limits."""
    filled = copy.deepcopy(item)
    for field in ("containers", "initContainers"):
        for container in filled["spec"].get(field, []):
            resources = container.get("resources", {})
            resources.update({"requests": dict(resources["limits"])} if resources else {})
    return codes(validate(filled, policy=policy))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_guard_refuses_exactly_what_the_webhook_refuses_by_its_rules(
    guarded: Cluster, settings: Mapping[str, Any]
) -> None:
    policy = install(guarded, settings)
    guarded_codes = {each.rule.code for each in GUARDED}
    found = {
        name: (refusal(guarded, item), guarded_codes & {*webhook_codes(item, policy)}) for name, item in VECTORS.items()
    }
    refused = {code for code, _ in found.values() if code}
    assert settings or refused == guarded_codes, "each rule must be tested"
    assert {name: each for name, each in found.items() if not (each[0] in each[1] or each == ("", set()))} == {}


@pytest.mark.parametrize(
    "built",
    [
        pod().asks(core="0.3", memory=20),
        pod().container(limits=amounts(core=30, memory=20), requests=amounts(core=20, memory=20)),
    ],
    ids=["a fraction", "requests are not limits"],
)
def test_amounts_the_guard_does_not_check_are_refused_by_kubernetes(guarded: Cluster, built: PodBuilder) -> None:
    answer = create(guarded, complete(built))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_refusal_names_the_field_the_value_the_rule_and_the_fix(guarded: Cluster) -> None:
    install(guarded, {})
    answer = create(guarded, bad("much"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"].endswith(
        'spec.containers[0].resources.limits: got "tencent.com/vcuda-core=150, tencent.com/vcuda-memory=20"; cores must'
        " be 1-99 for a share of one card, or a multiple of 100 for whole cards; use 100 or 200 [HC002]"
    )


def test_the_guards_expressions_pass_type_checking(guarded: Cluster) -> None:
    install(guarded, {})

    def checked() -> Object:
        status: Object = guarded.request("GET", _POLICY).must().get("status", {})
        return status

    guarded.wait_until(lambda: "typeChecking" in checked(), what="the types of its expressions to be checked")
    assert checked()["typeChecking"] == {}


@pytest.mark.parametrize("namespace", [names.KUBE_SYSTEM])
def test_the_guard_ignores_an_exempt_namespace(guarded: Cluster, namespace: str) -> None:
    install(guarded, {})
    assert guarded.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", bad("much")).ok
