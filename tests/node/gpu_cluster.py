"""Halfcard whole: webhook, extender, stock scheduler, an agent on a real node, and pods that tell what they got."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.builders import PodBuilder
from tests.cluster.agent import Agent
from tests.cluster.cluster import Cluster
from tests.cluster.extension import Extension
from tests.cluster.installation import Installation
from tests.cluster.load import UNHURRIED
from tests.cluster.node import Node
from tests.cluster.objects import Object
from tests.cluster.pods import create_pod, wait_for_phase

from .told import Told, ask, telling


@dataclass(frozen=True, slots=True)
class GpuCluster:
    """One node; its agent has two cards of its stand-in driver."""

    webhook: Installation
    extension: Extension
    node: Node
    agent: Agent

    @property
    def cluster(self) -> Cluster:
        return self.node.cluster

    def create(self, namespace: str, built: PodBuilder, **fields: Any) -> str:
        """A pod that tells; the fields are those of its spec. Its name."""
        return create_pod(self.cluster, namespace, telling(built).specified(**fields).manifest)

    def run(self, namespace: str, built: PodBuilder, **fields: Any) -> Object:
        """As `create`; the pod once it runs."""
        found: Object = wait_for_phase(self.cluster, namespace, self.create(namespace, built, **fields), "Running")
        return found

    def ask(self, pod: Object, container: str = "containers-0") -> Told:
        """What one of its containers got."""
        metadata = pod["metadata"]
        return ask(self.cluster, metadata["namespace"], metadata["name"], container)


@contextmanager
def gpu_cluster() -> Iterator[GpuCluster]:
    """The webhook is registered last: nothing is asked of it while the others are made."""
    with (
        Cluster(flags=UNHURRIED) as cluster,
        Extension(cluster) as extension,
        Node(cluster, "gpu-a") as node,
        Agent(node) as agent,
    ):
        extension.add_replica()
        extension.schedule_by(extension.recommended())
        webhook = Installation(cluster)
        webhook.add_replica()
        webhook.register()
        yield GpuCluster(webhook, extension, node, agent)
