"""Halfcard whole: webhook, extender, stock scheduler, an agent on a real node, and pods that tell what they got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from devcluster.cluster import Cluster
from devcluster.control_plane.client import CommandResult
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.installation import Installation
from tests.builders import PodBuilder
from tests.cluster.agent import Agent
from tests.cluster.load import NO_RATE_LIMITS
from tests.cluster.pods import create_pod, wait_for_phase
from tests.nvml.stand_in import StandInCard

from .told import Told, ask, telling


@dataclass(frozen=True, slots=True)
class GpuCluster:
    """One node; its agent has two cards of its stand-in driver where nothing else is said."""

    webhook: Installation
    extender: ExtenderInstallation
    node: RealNode
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

    def execute(self, pod: Object, script: str) -> CommandResult:
        """In its first container."""
        metadata = pod["metadata"]
        names = (metadata["name"], f"--namespace={metadata['namespace']}")
        return self.cluster.kubectl("exec", *names, "--", "sh", "-c", script)

    def device(self, pod: Object, minor: int) -> tuple[int, int]:
        """Major and minor number of what stands in its first container for a card's device file."""
        major, _, number = self.execute(pod, f"stat -c %t:%T /dev/nvidia{minor}").stdout.partition(":")
        return int(major, 16), int(number, 16)

    @contextmanager
    def equipped(
        self, cards: Sequence[StandInCard], settings: Mapping[str, Any] | None = None, *arguments: str
    ) -> Iterator[Agent]:
        """The agent with other cards, settings and further arguments for a while; the node has no pods then."""
        before, command = self.agent.driver.cards, self.agent.program.command
        self._equip(cards, settings or {}, [*command, *arguments])
        try:
            yield self.agent
        finally:
            self._equip(before, {}, command)

    def _equip(self, cards: Sequence[StandInCard], settings: Mapping[str, Any], command: Sequence[str]) -> None:
        agent = self.agent
        agent.terminate()
        agent.driver.cards = [*cards]
        for card in cards:
            agent.add_device(card.minor)
        agent.configure(settings)
        agent.program.command = command
        agent.start()
        self.cluster.wait_until(
            lambda: self._placed_on() == [card.uuid for card in cards], what="the extender to see those cards"
        )

    def _placed_on(self) -> list[str]:
        return [card["name"] for card in self.extender.inspect(self.node.name)["cards"]]

    @contextmanager
    def space(self, name: str) -> Iterator[str]:
        """A namespace; its pods are gone afterwards, and their cards free."""
        try:
            yield self.cluster.create_namespace(name)
        finally:
            done = self.cluster.kubectl("delete", "pods", "--all", f"--namespace={name}")
            assert done.code == 0, done.stderr


@contextmanager
def gpu_cluster(
    *, cards: Sequence[StandInCard] = (), settings: Mapping[str, Any] | None = None, words: Sequence[str] = ()
) -> Iterator[GpuCluster]:
    """The settings are those of all processes, `words` further resources of which the scheduler asks the extender.

    The webhook is registered last: nothing is asked of it while the others are made.
    """
    with (
        Cluster(flags=NO_RATE_LIMITS) as cluster,
        ExtenderInstallation(cluster, settings=settings) as extender,
        RealNode(cluster, "gpu-a") as node,
        Agent(node, cards=cards, settings=settings) as agent,
    ):
        extender.add_replica()
        configuration = extender.recommended()
        configuration["extenders"][0]["managedResources"] += [{"name": word} for word in words]
        extender.schedule_by(configuration)
        webhook = Installation(cluster, settings=settings)
        webhook.add_replica()
        webhook.register()
        yield GpuCluster(webhook, extender, node, agent)
