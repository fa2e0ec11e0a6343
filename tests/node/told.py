"""What containers say of what they were given, beside what was recorded for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devcluster.cluster import Cluster
from devcluster.nodes.images import BUSYBOX
from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder
from tests.cluster.site import cards_of

_TELL: Final = (
    f"echo visible=${names.VISIBLE_DEVICES}; echo devices=$(cd /dev && echo nvidia*); "
    f'echo limits=$(cat "${names.LIMITS_VARIABLE}"); env | grep -E "^({names.ALIYUN_RECORD_PREFIX}|CUDA_|HALFCARD_)"; '
    "echo told"
)
STAY: Final = f"{_TELL}; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"
_END: Final = _TELL


@dataclass(frozen=True, slots=True)
class Told:
    """By one container.

    Attributes:
        cards: by uuid, as NVIDIA's runtime would read them.
        devices: of /dev.
        limits: the file's content.
        env: further variables.
    """

    cards: tuple[str, ...]
    devices: frozenset[str]
    limits: Mapping[str, Any]
    env: Mapping[str, str]


def read_told(log: str) -> Told | None:
    """The last that a container said; None where it has not said all yet."""
    _, _, last = log.rpartition("visible=")
    if not last.rstrip().endswith("told"):
        return None
    said = dict(line.split("=", 1) for line in f"visible={last}".splitlines() if "=" in line)
    cards = tuple(said.pop("visible").split(","))
    devices = frozenset(said.pop("devices").split())
    return Told(cards, devices, json.loads(said.pop("limits") or "{}"), said)


def telling(built: PodBuilder) -> PodBuilder:
    """The same pod of containers that tell: init containers end then, all others stay."""
    spec = dict(built.spec)
    spec["containers"] = [_container(each, STAY) for each in spec["containers"]]
    if "initContainers" in spec:
        spec["initContainers"] = [
            _container(each, STAY if each.get("restartPolicy") == "Always" else _END) for each in spec["initContainers"]
        ]
    return PodBuilder(built.metadata, {**spec, "terminationGracePeriodSeconds": 1})


def _container(container: Mapping[str, Any], script: str) -> Object:
    image = {"image": BUSYBOX, "imagePullPolicy": "Never"}
    return {**container, **image, "name": container["name"].lower(), "command": ["sh", "-c", script]}


def ask(cluster: Cluster, namespace: str, pod: str, container: str) -> Told:
    """Waits for the container to have told."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}"

    def told() -> Told | None:
        answer = cluster.request("GET", path)
        return read_told(answer.body) if answer.ok and isinstance(answer.body, str) else None

    cluster.wait_until(lambda: told() is not None, what=f"{container} of {pod} to tell what it got")
    found = told()
    assert found is not None
    return found


def containers_of(pod: Object) -> Iterator[str]:
    for field in ("initContainers", "containers"):
        for container in pod["spec"].get(field, ()):
            yield container["name"]


def differences(cluster: Cluster, pod: Object) -> list[str]:
    """Where a pod's containers got other cards than were recorded for them."""
    recorded = cards_of(pod)
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    found = []
    for container, cards in recorded.items():
        told = ask(cluster, namespace, name, container)
        if sorted(told.cards) != sorted(set(cards)):
            found.append(f"{name}/{container}: recorded {cards}, got {list(told.cards)}")
    return found
