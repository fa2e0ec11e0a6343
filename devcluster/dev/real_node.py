"""The node of a development cluster that runs pods, with made-up cards."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from halfcard import names
from halfcard.claims import WHOLE_CARD

from ..cluster import Cluster
from ..control_plane import isolation
from ..errors import CannotStartError
from ..nodes.node import RealNode, check_machine
from ..services.agent_process import AgentProcess
from ..startable import Startable
from .state import Program

NODE: Final = "real-t4"
GROUPS: Final = ("node", "containerd")
POD: Final = Path(__file__).with_name("pod.yaml")
_CARDS: Final = 4
_TAINT: Final = "halfcard.test/no-registry:NoSchedule"
"""The taint of the node: its containerd pulls nothing, so pods with other images stay on the nodes of kwok."""


def why_not() -> str:
    """Names what this machine lacks and the build cannot provide; empty if nothing is missing."""
    try:
        check_machine()
    except CannotStartError as error:
        return str(error)
    if not isolation.is_possible():
        return "a node needs network namespaces and veth pairs: run with CAP_SYS_ADMIN and CAP_NET_ADMIN."
    return ""


class DevelopmentNode(Startable):
    """A node with an agent; pods can run there once the context is entered."""

    node: RealNode
    agent: AgentProcess

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        super().__init__()

    def _start(self) -> None:
        self.node = self._stack.enter_context(RealNode(self._cluster, NODE))
        for verb, what in (("taint", _TAINT), ("label", f"{names.AGENT_LABEL}=true")):
            done = self._cluster.kubectl(verb, "node", NODE, what)
            if done.code:
                raise CannotStartError(f"node {NODE} took no {verb}: {done.stderr}")
        process = AgentProcess(self.node, arguments=("--fake-gpus", f"{_CARDS}xT4"))
        self.agent = self._stack.enter_context(process)
        self.agent.wait_offered(names.VCUDA_CORE, _CARDS * WHOLE_CARD)

    def parts(self) -> tuple[Program, ...]:
        """Returns its programs. Their health is requested through the API server, because the machine cannot reach a
        node.
        """
        at = f"{self._cluster.url}/api/v1/nodes/{NODE}"
        kubelet, agent = self.node.kubelet, self.agent.program
        return (
            Program(kubelet.name, kubelet.pid, f"{at}/proxy/healthz", str(kubelet.log)),
            Program(agent.name, agent.pid, f"{at}:{names.AGENT_PORT}/proxy{names.READY_PATH}", str(agent.log)),
        )
