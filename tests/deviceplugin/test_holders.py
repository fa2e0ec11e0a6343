"""Who holds what, by kubelet's checkpoint; its socket is asked only where that says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest

from deviceplugin.checkpoint import Given
from deviceplugin.holders import Holders
from deviceplugin.kubelet.pod_resources import Held
from halfcard import names
from halfcard.placing.facts import Facts
from tests.builders import pod
from tests.halfcard.placing.examples import facts

CORE: Final = names.VCUDA_CORE
PODS: Final = {"a": facts(pod("a").init(core=10, memory=1).asks(core=10, memory=1)), "b": facts(pod("b").asks(core=10))}
GIVEN: Final = (
    Given("a", "initContainers-0", CORE, frozenset({"hc-0", "hc-1"})),
    Given("a", "containers-0", CORE, frozenset({"hc-0"})),
    Given("b", "containers-0", CORE, frozenset({"hc-2"})),
    Given("b", "containers-0", "example.com/nic", frozenset({"eth1"})),
    Given("gone", "containers-0", CORE, frozenset({"hc-7"})),
)
LISTED: Final = (Held("team", "c", "containers-0", CORE, frozenset({"hc-9", "GPU-1::0"})),)


class Kubelet:
    def __init__(self, given: tuple[Given, ...] | None, pods: Mapping[str, Facts] | None) -> None:
        self.asked = 0
        self.holders = Holders(lambda: given, self.listed, lambda: pods)

    async def listed(self) -> tuple[Held, ...]:
        self.asked += 1
        return LISTED


def test_what_pods_that_are_over_hold_is_free_and_what_is_not_ours_is_left_alone() -> None:
    kubelet = Kubelet(GIVEN, PODS)
    assert asyncio.run(kubelet.holders.ids()) == {CORE: {"hc-0", "hc-1", "hc-2"}}
    assert kubelet.asked == 0


def test_plain_init_containers_are_not_listed_as_by_the_socket() -> None:
    kubelet = Kubelet(GIVEN, PODS)
    held = asyncio.run(kubelet.holders.held())
    assert [(each.pod, each.container, each.ids) for each in held if each.resource == CORE] == [
        (PODS["a"].name, "containers-0", frozenset({"hc-0"})),
        (PODS["b"].name, "containers-0", frozenset({"hc-2"})),
    ]
    assert kubelet.asked == 0


def test_before_the_pods_were_seen_nothing_of_what_was_given_is_free() -> None:
    kubelet = Kubelet(GIVEN, None)
    assert asyncio.run(kubelet.holders.ids()) == {CORE: {"hc-0", "hc-1", "hc-2", "hc-7"}}
    assert asyncio.run(kubelet.holders.held()) == LISTED


def test_where_there_is_no_checkpoint_the_socket_is_asked() -> None:
    kubelet = Kubelet(None, PODS)
    assert asyncio.run(kubelet.holders.ids()) == {CORE: {"hc-9"}}
    assert asyncio.run(kubelet.holders.held()) == LISTED
    assert kubelet.asked == 2
    assert kubelet.holders.exactly(CORE, frozenset({"hc-9"})) == {}


@pytest.mark.parametrize(
    ("ids", "pods"),
    [
        ({"hc-0"}, {"a": PODS["a"]}),
        ({"hc-0", "hc-1"}, {"a": PODS["a"]}),
        ({"hc-1"}, {}),
        ({"hc-7"}, {"gone": None}),
    ],
)
def test_who_holds_exactly_these_ids_is_named(ids: set[str], pods: Mapping[str, Facts | None]) -> None:
    assert Kubelet(GIVEN, PODS).holders.exactly(CORE, frozenset(ids)) == pods


def test_of_those_to_whom_kubelet_gave_the_same_twice_all_are_named() -> None:
    twice = (*GIVEN, Given("a", "containers-1", CORE, frozenset({"hc-2"})))
    assert Kubelet(twice, PODS).holders.exactly(CORE, frozenset({"hc-2"})).keys() == {"a", "b"}
