"""All of Halfcard: webhook, extender, stock scheduler, an agent on a real node, and pods that print what they got."""

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

from .container_report import ContainerReport, read_report, reporting


@dataclass(frozen=True, slots=True)
class GpuCluster:
    """A cluster with one node; its agent finds two cards of a stand-in driver unless a test asks for others."""

    webhook: Installation
    extender: ExtenderInstallation
    node: RealNode
    agent: Agent

    @property
    def cluster(self) -> Cluster:
        return self.node.cluster

    def create(self, namespace: str, built: PodBuilder, **fields: Any) -> str:
        """Creates a pod that prints a report; `fields` are those of its spec. Returns its name."""
        return create_pod(self.cluster, namespace, reporting(built).specified(**fields).manifest)

    def run(self, namespace: str, built: PodBuilder, **fields: Any) -> Object:
        """Creates a pod as `create` does, and returns it when it runs."""
        found: Object = wait_for_phase(self.cluster, namespace, self.create(namespace, built, **fields), "Running")
        return found

    def report(self, pod: Object, container: str = "containers-0") -> ContainerReport:
        """Returns what one container of a pod was given."""
        metadata = pod["metadata"]
        return read_report(self.cluster, metadata["namespace"], metadata["name"], container)

    def execute(self, pod: Object, script: str) -> CommandResult:
        """Runs a script in the first container of a pod."""
        metadata = pod["metadata"]
        names = (metadata["name"], f"--namespace={metadata['namespace']}")
        return self.cluster.kubectl("exec", *names, "--", "sh", "-c", script)

    def first_process(self, pod: Object) -> int:
        """Returns the pid on the node of a process in the first container of a pod."""
        _, _, container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")
        done = self.node.run("sh", "-c", f"grep -ls {container} /proc/[0-9]*/cgroup")
        return min(int(path.split("/")[2]) for path in done.stdout.split())

    def device(self, pod: Object, minor: int) -> tuple[int, int]:
        """Major and minor number of a card's device file in the first container of a pod."""
        major, _, number = self.execute(pod, f"stat -c %t:%T /dev/nvidia{minor}").stdout.partition(":")
        return int(major, 16), int(number, 16)

    @contextmanager
    def reconfigured(
        self, cards: Sequence[StandInCard], settings: Mapping[str, Any] | None = None, *arguments: str
    ) -> Iterator[Agent]:
        """Restarts the agent with other cards, settings and arguments until the block ends; the node has no pods."""
        before, command = self.agent.driver.cards, self.agent.program.command
        self._reconfigure(cards, settings or {}, [*command, *arguments])
        try:
            yield self.agent
        finally:
            self._reconfigure(before, {}, command)

    def _reconfigure(self, cards: Sequence[StandInCard], settings: Mapping[str, Any], command: Sequence[str]) -> None:
        agent = self.agent
        agent.terminate()
        agent.driver.cards = [*cards]
        for card in cards:
            agent.add_device(card.minor)
        agent.configure(settings)
        agent.program.command = command
        agent.start()
        self.cluster.wait_until(
            lambda: self._known_cards() == [card.uuid for card in cards], what="the extender to know the new cards"
        )

    def _known_cards(self) -> list[str]:
        return [card["name"] for card in self.extender.inspect(self.node.name)["cards"]]

    @contextmanager
    def space(self, name: str) -> Iterator[str]:
        """A new namespace; its pods are deleted afterwards, so that their cards are free."""
        try:
            yield self.cluster.create_namespace(name)
        finally:
            done = self.cluster.kubectl("delete", "pods", "--all", f"--namespace={name}")
            assert done.code == 0, done.stderr


@contextmanager
def gpu_cluster(
    *, cards: Sequence[StandInCard] = (), settings: Mapping[str, Any] | None = None, resources: Sequence[str] = ()
) -> Iterator[GpuCluster]:
    """All processes have the same settings; the scheduler passes pods with `resources` to the extender, too.

    The webhook is registered last, so that it is not called while the other processes start.
    """
    with (
        Cluster(flags=NO_RATE_LIMITS) as cluster,
        ExtenderInstallation(cluster, settings=settings) as extender,
        RealNode(cluster, "gpu-a") as node,
        Agent(node, cards=cards, settings=settings) as agent,
    ):
        extender.add_replica()
        configuration = extender.recommended()
        configuration["extenders"][0]["managedResources"] += [{"name": each} for each in resources]
        extender.schedule_by(configuration)
        webhook = Installation(cluster, settings=settings)
        webhook.add_replica()
        webhook.register()
        yield GpuCluster(webhook, extender, node, agent)
