"""A namespace and nodes of one test, in a cluster that others use too: its pods go to its own nodes."""

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
NOBODY: Final = "nobody"
"""A scheduler that does not exist: its pods are bound by the test."""


@dataclass(frozen=True, slots=True)
class Site:
    """`model` is the label by which its nodes are chosen; nobody else's have it."""

    extender: ExtenderInstallation
    namespace: str
    model: str

    @property
    def cluster(self) -> Cluster:
        return self.extender.cluster

    def add_nodes(self, system: str, count: int = 1, *, cards: int = 4, card_mib: int = T4_MIB) -> list[str]:
        """Of kwok's; known to the extender on return."""
        self.cluster.add_gpu_nodes([GpuNodes(count, self.model, card_mib, system, cards)])
        return self._known([f"{system}-{self.model.lower()}-{number:04}" for number in range(count)])

    def add_silent_node(self, system: str, *, cards: int = 1, card_mib: int = T4_MIB) -> str:
        """Nobody runs its pods or ends them: one that is deleted goes on terminating until it is forced."""
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
        """A pod for the nodes of this site; the fields are those of its spec."""
        selector = {names.NVIDIA_LABEL_PRODUCT: self.model}
        manifest = complete(built.specified(nodeSelector=selector, **fields))
        stored: Object = self.cluster.request("POST", self.pods, manifest).must()
        return stored

    def create_unscheduled(self, built: PodBuilder, **fields: Any) -> Object:
        return self.create(built, schedulerName=NOBODY, **fields)

    def place(self, built: PodBuilder, **fields: Any) -> Object:
        """As `create`; the pod once it has its node."""
        return self.bound(self.create(built, **fields)["metadata"]["name"])

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pod(self, name: str) -> Object:
        stored: Object = self.cluster.request("GET", f"{self.pods}/{name}").must()
        return stored

    def gone(self, name: str) -> bool:
        return self.cluster.request("GET", f"{self.pods}/{name}").status == 404

    def bound(self, name: str) -> Object:
        self.cluster.wait_until(lambda: bool(node_of(self.pod(name))), what=f"a node for {self.namespace}/{name}")
        return self.pod(name)

    def waits(self, name: str) -> str:
        """Why it has no node, in the scheduler's words, once it says so."""
        self.cluster.wait_until(lambda: bool(refusal_of(self.pod(name))), what=f"{name} to be found unschedulable")
        return refusal_of(self.pod(name))

    def delete(self, name: str, *, force: bool = False) -> None:
        body = {"gracePeriodSeconds": 0} if force else None
        self.cluster.request("DELETE", f"{self.pods}/{name}", body).must()

    # --- cards ----------------------------------------------------------------------------------------------------

    def cards(self, node: str) -> Any:
        return self.extender.inspect(node)["cards"]

    def tenants(self, node: str) -> list[list[str]]:
        """The names of the pods on each card."""
        return [[pod["name"] for pod in card["pods"]] for card in self.cards(node)]

    def shows(self, node: str, tenants: list[list[str]]) -> None:
        """Waits for what the watch will bring."""
        self.cluster.wait_until(lambda: self.tenants(node) == tenants, what=f"inspect to show {tenants} on {node}")


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def annotations_of(pod: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found


def cards_of(pod: Object) -> dict[str, list[str]]:
    """By container, as recorded."""
    found: dict[str, list[str]] = json.loads(annotations_of(pod)[names.PLACEMENT])["cards"]
    return found


def refusal_of(pod: Object) -> str:
    """What the scheduler says of a pod that fits nowhere; empty where it has not said so."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((each.get("message", "") for each in conditions if each.get("reason") == "Unschedulable"), "")
