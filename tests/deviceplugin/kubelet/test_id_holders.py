"""The device ids of pods by kubelet's checkpoint; its socket is asked only without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from deviceplugin.kubelet.id_holders import IdHolders
from deviceplugin.kubelet.messages import CheckpointEntry, ListedDevices
from halfcard import names
from halfcard.placing.pod_facts import PodFacts
from tests.builders import pod
from tests.halfcard.placing.examples import facts

CORE: Final = names.VCUDA_CORE
PODS: Final = {"a": facts(pod("a").init(core=10, memory=1).asks(core=10, memory=1)), "b": facts(pod("b").asks(core=10))}
GIVEN: Final = (
    CheckpointEntry("a", "initContainers-0", CORE, frozenset({"hc-0", "hc-1"})),
    CheckpointEntry("a", "containers-0", CORE, frozenset({"hc-0"})),
    CheckpointEntry("b", "containers-0", CORE, frozenset({"hc-2"})),
    CheckpointEntry("b", "containers-0", "example.com/nic", frozenset({"eth1"})),
    CheckpointEntry("gone", "containers-0", CORE, frozenset({"hc-7"})),
)
LISTED: Final = (ListedDevices("team", "c", "containers-0", CORE, frozenset({"hc-9", "GPU-1::0"})),)


class Kubelet:
    def __init__(self, given: tuple[CheckpointEntry, ...] | None, pods: Mapping[str, PodFacts] | None) -> None:
        self.asked = 0
        self.holders = IdHolders(lambda: given, self.listed, lambda: pods)

    async def listed(self) -> tuple[ListedDevices, ...]:
        self.asked += 1
        return LISTED


async def test_ids_of_ended_pods_are_free_and_foreign_ids_are_ignored() -> None:
    kubelet = Kubelet(GIVEN, PODS)
    assert await kubelet.holders.held_ids() == {CORE: {"hc-0", "hc-1", "hc-2"}}
    assert kubelet.asked == 0


async def test_plain_init_containers_are_not_listed_as_by_the_socket() -> None:
    kubelet = Kubelet(GIVEN, PODS)
    held = await kubelet.holders.listed_devices()
    assert [(each.pod, each.container, each.ids) for each in held if each.resource == CORE] == [
        (PODS["a"].name, "containers-0", frozenset({"hc-0"})),
        (PODS["b"].name, "containers-0", frozenset({"hc-2"})),
    ]
    assert kubelet.asked == 0


async def test_before_the_pods_are_listed_all_allocated_ids_count_as_used() -> None:
    kubelet = Kubelet(GIVEN, None)
    assert await kubelet.holders.held_ids() == {CORE: {"hc-0", "hc-1", "hc-2", "hc-7"}}
    assert await kubelet.holders.listed_devices() == LISTED


async def test_without_a_checkpoint_the_socket_is_asked() -> None:
    kubelet = Kubelet(None, PODS)
    assert await kubelet.holders.held_ids() == {CORE: {"hc-9"}}
    assert await kubelet.holders.listed_devices() == LISTED
    assert kubelet.asked == 2
    assert kubelet.holders.pods_with_ids(CORE, frozenset({"hc-9"})) == {}


@pytest.mark.parametrize(
    ("ids", "pods"),
    [
        ({"hc-0"}, {"a": PODS["a"]}),
        ({"hc-0", "hc-1"}, {"a": PODS["a"]}),
        ({"hc-1"}, {}),
        ({"hc-7"}, {"gone": None}),
    ],
)
def test_the_pod_with_exactly_these_ids_is_found(ids: set[str], pods: Mapping[str, PodFacts | None]) -> None:
    assert Kubelet(GIVEN, PODS).holders.pods_with_ids(CORE, frozenset(ids)) == pods


def test_all_pods_with_the_same_ids_are_returned() -> None:
    twice = (*GIVEN, CheckpointEntry("a", "containers-1", CORE, frozenset({"hc-2"})))
    assert Kubelet(twice, PODS).holders.pods_with_ids(CORE, frozenset({"hc-2"})).keys() == {"a", "b"}
