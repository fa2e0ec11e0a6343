"""A namespace and nodes of one test in a shared cluster: its pods run on its own nodes only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from devcluster.cluster import Cluster
from devcluster.fake_nodes.gpu_nodes import SYSTEMS, GpuNodes
from devcluster.objects import Object
from devcluster.services.extender_installation import ExtenderInstallation
from halfcard import names
from tests.builders import PodBuilder

from .manifests import complete

T4_MIB: Final = 15360
NO_SCHEDULER: Final = "no-scheduler"
"""The name of a scheduler that does not exist: the test itself binds the pods."""


@dataclass(frozen=True, slots=True)
class Site:
    """A namespace and nodes of one test; only its own nodes have the label `model`."""

    extender: ExtenderInstallation
    namespace: str
    model: str

    @property
    def cluster(self) -> Cluster:
        return self.extender.cluster

    def add_nodes(self, system: str, count: int = 1, *, cards: int = 4, card_mib: int = T4_MIB) -> list[str]:
        """Adds nodes of kwok and waits until the extender knows them."""
        self.cluster.add_gpu_nodes([GpuNodes(count, self.model, card_mib, system, cards)])
        return self._known([f"{system}-{self.model.lower()}-{number:04}" for number in range(count)])

    def add_silent_node(self, system: str, *, cards: int = 1, card_mib: int = T4_MIB) -> str:
        """Adds a node that runs and ends no pods: a deleted pod stays terminating until a forced delete."""
        row = GpuNodes(1, self.model, card_mib, system, cards)
        name = f"silent-{system}-{self.model.lower()}"
        amounts = {resource: str(amount) for resource, amount in SYSTEMS[system](row).items()}
        self.cluster.add_node(name, amounts, {names.NVIDIA_LABEL_PRODUCT: self.model})
        return self._known([name])[0]

    def _known(self, nodes: list[str]) -> list[str]:
        def known() -> bool:
            seen = {node["name"]: node for node in self.extender.inspect()["nodes"]}
            return all(node in seen and seen[node]["cards"] for node in nodes)

        self.cluster.wait_until(known, what=f"the extender to know {', '.join(nodes)}")
        return nodes

    # --- pods -----------------------------------------------------------------------------------------------------

    def create(self, built: PodBuilder, **fields: Any) -> Object:
        """Creates a pod for the nodes of this site; `fields` are fields of its spec."""
        selector = {names.NVIDIA_LABEL_PRODUCT: self.model, **fields.pop("nodeSelector", {})}
        manifest = complete(built.specified(nodeSelector=selector, **fields))
        stored: Object = self.cluster.request("POST", self.pods, manifest).must()
        return stored

    def create_unscheduled(self, built: PodBuilder, **fields: Any) -> Object:
        return self.create(built, schedulerName=NO_SCHEDULER, **fields)

    def place(self, built: PodBuilder, **fields: Any) -> Object:
        """Creates a pod, waits until it has a node, and returns it."""
        return self.wait_until_bound(self.create(built, **fields)["metadata"]["name"])

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pod(self, name: str) -> Object:
        stored: Object = self.cluster.request("GET", f"{self.pods}/{name}").must()
        return stored

    def is_gone(self, name: str) -> bool:
        return self.cluster.request("GET", f"{self.pods}/{name}").status == 404

    def wait_until_bound(self, name: str) -> Object:
        self.cluster.wait_until(lambda: bool(node_of(self.pod(name))), what=f"a node for {self.namespace}/{name}")
        return self.pod(name)

    def wait_for_refusal(self, name: str) -> str:
        """Waits until the scheduler reports why a pod has no node, and returns its message."""
        self.cluster.wait_until(lambda: bool(refusal_of(self.pod(name))), what=f"{name} to be found unschedulable")
        return refusal_of(self.pod(name))

    def delete(self, name: str, *, force: bool = False) -> None:
        body = {"gracePeriodSeconds": 0} if force else None
        self.cluster.request("DELETE", f"{self.pods}/{name}", body).must()

    # --- cards ----------------------------------------------------------------------------------------------------

    def cards(self, node: str) -> Any:
        return self.extender.inspect(node)["cards"]

    def pods_by_card(self, node: str) -> list[list[str]]:
        """Returns the names of the pods on each card."""
        return [[pod["name"] for pod in card["pods"]] for card in self.cards(node)]

    def wait_for_pods(self, node: str, pods_by_card: list[list[str]]) -> None:
        """Waits until the extender has exactly these pods on the cards of a node."""
        self.cluster.wait_until(
            lambda: self.pods_by_card(node) == pods_by_card, what=f"inspect to show {pods_by_card} on {node}"
        )


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def annotations_of(pod: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found


def cards_of(pod: Object) -> dict[str, list[str]]:
    """Returns the recorded cards of each container."""
    found: dict[str, list[str]] = json.loads(annotations_of(pod)[names.PLACEMENT])["cards"]
    return found


def refusal_of(pod: Object) -> str:
    """Returns the scheduler's message about an unschedulable pod; empty while there is none."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((each.get("message", "") for each in conditions if each.get("reason") == "Unschedulable"), "")
