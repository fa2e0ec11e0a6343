"""The options of an agent: those of the installation, and its paths on the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from serving.address import Address


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The settings of the installation that concern the agent.

    Attributes:
        resources: what the node offers.
        hami_split: to how many containers a card is offered under nvidia.com/gpu.
        slicing_config: the namespace and name of the ConfigMap with time slices; None for none.
        slicing_default: the configuration of a node that names none.
    """

    dialects: Dialects
    dealings: CapacityRules
    resources: tuple[str, ...]
    hami_split: int = 1
    slicing_config: tuple[str, str] | None = None
    slicing_default: str = ""


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The paths on this node.

    Attributes:
        node: its name.
        http: the address for people and Prometheus.
        devices: the folder of the driver's device files.
        plugins: kubelet's folder of plugins' sockets.
        pod_resources: kubelet's socket that lists holders of ids.
        cdi: the folder where the runtime reads CDI descriptions.
        state: our own folder.
        by_symlinks: the runtime does not support CDI.
    """

    node: str
    http: Address
    devices: Path
    plugins: Path
    pod_resources: Path
    cdi: Path
    state: Path
    by_symlinks: bool = False
