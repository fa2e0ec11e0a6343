"""Halfcard's node agent on a real node, with stand-ins for the driver and the devices."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any, Final

from devcluster.nodes.node import RealNode
from devcluster.services.agent_process import AgentProcess
from tests.nvml.stand_in import StandIn, StandInCard, stand_in_cards

_ALL_CARDS: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_MEMORY: Final = 1
_NULL: Final = 3
_FIRST_CARD: Final = 0x80


def card_device(minor: int) -> tuple[int, int]:
    """Returns the major and minor number of a card's device file: unique, and the file cannot be opened."""
    return _MEMORY, _FIRST_CARD + minor


class Agent(AgentProcess):
    """The agent on a node; `driver` is the stand-in for NVIDIA's library and may be changed at any time."""

    driver: StandIn

    def __init__(
        self,
        node: RealNode,
        *,
        cards: Sequence[StandInCard] = (),
        settings: Mapping[str, Any] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """Prepares an agent; without `cards` the node has two T4."""
        super().__init__(node, settings=settings, arguments=arguments)
        self._cards = cards or stand_in_cards(2)
        self.devices = self.folder / "dev"

    def _start(self) -> None:
        self.devices.mkdir(parents=True)
        self.driver = StandIn(self.folder, self._cards)
        for name in _ALL_CARDS:
            os.mknod(self.devices / name, stat.S_IFCHR | 0o666, os.makedev(_MEMORY, _NULL))
        for card in self._cards:
            self.add_device(card.minor)
        self._arguments += ["--device-root", str(self.devices)]
        self._environment = self.driver.environment
        super()._start()

    def add_device(self, minor: int) -> None:
        """Creates a card's device file as the driver does, unless it exists."""
        file = self.devices / f"nvidia{minor}"
        if not file.exists():
            os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(*card_device(minor)))
