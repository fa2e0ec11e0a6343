"""What a pod uses of each model by its location, also on nodes with several models."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from halfcard.cards import Card, Node
from halfcard.claims import Need
from halfcard.dialects import Dialects
from halfcard.placing.demand import needs_of
from halfcard.pod.requests import read_pod
from halfcard.quota.charge import charge
from halfcard.quota.pod_location import NodeKind, PodLocation, kind_of, location_of, recorded_location, widest_location
from tests.builders import PodBuilder, pod

MIXED: Final = Node("n", (Card(0, "T4", 16384), Card(1, "T4", 16384), Card(2, "A100", 81920)), pool="lab")


def needs(built: PodBuilder) -> tuple[Need, ...]:
    return needs_of(read_pod(built.read, Dialects()))[1]


def test_a_pod_is_charged_for_the_cards_of_each_model_and_in_its_pool_for_all() -> None:
    found = location_of(MIXED, needs(pod().asks(core=300)), ((0, 1, 2),))
    assert found == PodLocation(
        "lab",
        {"cores": 300, "cards": 3},
        {"T4": {"cores": 200, "cards": 2}, "A100": {"cores": 100, "cards": 1}},
    )


def test_each_container_is_charged_for_its_own_cards() -> None:
    found = location_of(MIXED, needs(pod().asks(core=30, memory=4).asks(core=20, memory=4)), ((0,), (2,)))
    assert found.by_model == {
        "T4": {"cores": 30, "memory": 1024, "shares": 1},
        "A100": {"cores": 20, "memory": 1024, "shares": 1},
    }


def test_init_containers_add_nothing_to_the_containers_that_follow() -> None:
    found = location_of(MIXED, needs(pod().init(core=60, memory=4).asks(core=30, memory=4)), ((0,), (0,)))
    assert found.by_model["T4"]["cores"] == 60


def test_a_pod_is_located_by_its_record_or_on_any_card_if_that_is_invalid() -> None:
    asked = needs(pod().asks(core=100))
    assert recorded_location(MIXED, asked, (("2",),)) == location_of(MIXED, asked, ((2,),))
    assert recorded_location(MIXED, asked, None) == widest_location(kind_of(MIXED), asked)
    assert recorded_location(MIXED, asked, (("no such card",),)) == widest_location(kind_of(MIXED), asked)


def test_without_a_record_a_pod_may_be_on_any_model_of_its_node() -> None:
    asked = needs(pod().asks(core=100))
    assert widest_location(kind_of(MIXED), asked) == PodLocation(
        "lab", charge(asked), {"T4": charge(asked), "A100": charge(asked)}
    )
    assert kind_of(Node("n")) == NodeKind("", ("",))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_the_charges_of_all_models_are_no_less_than_the_charge_of_the_pod(cards: list[int]) -> None:
    built = pod()
    for _ in cards:
        built = built.asks(core=10, memory=1)
    asked = needs(built)
    found = location_of(MIXED, asked, tuple([(at,) for at in cards]))
    assert sum(each["cores"] for each in found.by_model.values()) == charge(asked)["cores"]
