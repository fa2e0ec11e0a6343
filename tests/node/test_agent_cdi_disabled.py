"""The agent without CDI: a container has the device files of all cards, but those of other cards are /dev/null."""

from __future__ import annotations

from typing import Final

from halfcard import names
from tests.builders import pod
from tests.cluster.agent import card_device
from tests.cluster.site import cards_of
from tests.nvml.stand_in import stand_in_cards

from .gpu_cluster import GpuCluster

NULL_DEVICE: Final = (1, 3)  # /dev/null


def test_without_cdi_only_the_device_files_of_granted_cards_are_usable(gpus: GpuCluster) -> None:
    cards = stand_in_cards(3)
    with gpus.reconfigured(cards, {}, "--without-cdi") as agent, gpus.space("without-cdi") as space:
        agent.wait_offered(names.VCUDA_CORE, 300)
        for built in (pod("share").asks(core=30, memory=4), pod("cards").asks(core=200)):
            running = gpus.run(space, built)
            recorded = cards_of(running)["containers-0"]
            assert [each["uuid"] for each in gpus.report(running).limits["cards"]] == recorded
            for card in cards:
                expected = card_device(card.minor) if card.uuid in recorded else NULL_DEVICE
                assert gpus.device(running, card.minor) == expected
