"""Containers of tests print what they were given; it is compared with what was recorded for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from devcluster.cluster import Cluster
from devcluster.nodes.images import BUSYBOX
from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder
from tests.cluster.site import cards_of

END_OF_REPORT: Final = "end-of-report"
_REPORT: Final = (
    f"echo visible=${names.VISIBLE_DEVICES}; echo devices=$(cd /dev && echo nvidia*); "
    f'echo limits=$(cat "${names.LIMITS_VARIABLE}"); env | grep -E "^({names.ALIYUN_RECORD_PREFIX}|CUDA_|HALFCARD_)"; '
    f"echo {END_OF_REPORT}"
)
REPORT_AND_RUN: Final = f"{_REPORT}; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"
_REPORT_AND_END: Final = _REPORT


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """What one container was given.

    Attributes:
        cards: their uuids, as NVIDIA's runtime would read them.
        devices: the NVIDIA files in /dev.
        limits: the content of the container limits file.
        env: the variables that Halfcard sets besides.
    """

    cards: tuple[str, ...]
    devices: frozenset[str]
    limits: Mapping[str, Any]
    env: Mapping[str, str]


def parse_report(log: str) -> ContainerReport | None:
    """Returns the last report in a log; None before it is complete."""
    _, _, last = log.rpartition("visible=")
    if not last.rstrip().endswith(END_OF_REPORT):
        return None
    values = dict(line.split("=", 1) for line in f"visible={last}".splitlines() if "=" in line)
    cards = tuple(values.pop("visible").split(","))
    devices = frozenset(values.pop("devices").split())
    return ContainerReport(cards, devices, json.loads(values.pop("limits") or "{}"), values)


def reporting(built: PodBuilder) -> PodBuilder:
    """The same pod with containers that print a report: init containers end after it, all others keep running."""
    spec = dict(built.spec)
    spec["containers"] = [_container(each, REPORT_AND_RUN) for each in spec["containers"]]
    if "initContainers" in spec:
        spec["initContainers"] = [
            _container(each, REPORT_AND_RUN if each.get("restartPolicy") == "Always" else _REPORT_AND_END)
            for each in spec["initContainers"]
        ]
    return PodBuilder(built.metadata, {**spec, "terminationGracePeriodSeconds": 1})


def _container(container: Mapping[str, Any], script: str) -> Object:
    image = {"image": BUSYBOX, "imagePullPolicy": "Never"}
    return {**container, **image, "name": container["name"].lower(), "command": ["sh", "-c", script]}


def read_report(cluster: Cluster, namespace: str, pod: str, container: str) -> ContainerReport:
    """Waits until the container has printed its report."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}"

    def report() -> ContainerReport | None:
        answer = cluster.request("GET", path)
        return parse_report(answer.body) if answer.ok and isinstance(answer.body, str) else None

    cluster.wait_until(lambda: report() is not None, what=f"the report of {container} of {pod}", seconds=90)
    found = report()
    assert found is not None
    return found


def wrong_cards(cluster: Cluster, pod: Object) -> list[str]:
    """Returns a sentence for each container of a pod that got other cards than were recorded for it."""
    recorded = cards_of(pod)
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    found = []
    for container, cards in recorded.items():
        report = read_report(cluster, namespace, name, container)
        if sorted(report.cards) != sorted(set(cards)):
            found.append(f"{name}/{container}: recorded {cards}, got {list(report.cards)}")
    return found
