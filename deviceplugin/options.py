"""The settings of the installation that concern the agent."""

from __future__ import annotations

from dataclasses import dataclass

from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.isolation.mode import IsolationMode


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of an agent.

    Attributes:
        resources: what the node offers.
        hami_split: how many containers may share a card under nvidia.com/gpu.
        slicing_config: the namespace and name of the ConfigMap with time slices; None for none.
        slicing_default: the configuration of a node that names none.
        exempt: the namespaces whose pods may use cards without a grant.
        marks_misuse: whether pods that use what they were not granted are marked for eviction.
        isolation: whether containers are held to their shares, where the node says nothing else.
        mistake: why these are not the current settings; empty if they are.
    """

    dialects: Dialects
    capacity_rules: CapacityRules
    resources: tuple[str, ...]
    hami_split: int = 1
    slicing_config: tuple[str, str] | None = None
    slicing_default: str = ""
    exempt: frozenset[str] = frozenset()
    marks_misuse: bool = False
    isolation: IsolationMode = IsolationMode.OFF
    mistake: str = ""
