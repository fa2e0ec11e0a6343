"""The way for runtimes that know no CDI, on one that does: files of all cards, of which the others lead nowhere."""

from __future__ import annotations

from typing import Final

from halfcard import names
from tests.builders import pod
from tests.cluster.agent import card_device
from tests.cluster.site import cards_of
from tests.nvml.stand_in import stand_in_cards

from .gpu_cluster import GpuCluster

NOWHERE: Final = (1, 3)  # /dev/null


def test_the_files_of_its_cards_lead_to_them_and_all_others_nowhere(gpus: GpuCluster) -> None:
    cards = stand_in_cards(3)
    with gpus.equipped(cards, {}, "--without-cdi") as agent, gpus.space("by-links") as space:
        agent.wait_offered(names.VCUDA_CORE, 300)
        for built in (pod("share").asks(core=30, memory=4), pod("cards").asks(core=200)):
            running = gpus.run(space, built)
            recorded = cards_of(running)["containers-0"]
            assert [each["uuid"] for each in gpus.ask(running).limits["cards"]] == recorded
            for card in cards:
                expected = card_device(card.minor) if card.uuid in recorded else NOWHERE
                assert gpus.device(running, card.minor) == expected
