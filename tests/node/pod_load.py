"""Creates pods while a test replaces the webhook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import count

from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse
from tests.builders import pod

from .container_report import reporting


class PodLoad:
    """Creates pods by dry run, and each `real_every`th really.

    A scheduling gate keeps it off the nodes until it is deleted.
    """

    def __init__(self, cluster: Cluster, namespace: str, *, real_every: int) -> None:
        self._cluster = cluster
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._real_every = real_every
        self._numbers = count(1)

    def create(self) -> ApiResponse:
        number = next(self._numbers)
        built = pod(f"load-{number}").asks(core=30, memory=10)
        gated = reporting(built.specified(schedulingGates=[{"name": "example.com/never"}])).manifest
        if number % self._real_every:
            return self._cluster.request("POST", f"{self._pods}?dryRun=All", gated)
        answer = self._cluster.request("POST", self._pods, gated)
        if answer.ok:
            self._cluster.request("DELETE", f"{self._pods}/load-{number}").must()
        return answer


def failures(answers: Iterable[ApiResponse]) -> Counter[str]:
    return Counter(f"{each.status} {each.body['message']}" for each in answers if not each.ok)
