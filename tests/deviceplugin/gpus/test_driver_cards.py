"""The driver's cards as cards of the domain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.gpus.driver_cards import cards
from deviceplugin.gpus.interface import Gpu
from halfcard.cards import Card
from halfcard.inventory import read_inventory, write_inventory


def test_a_card_has_the_values_of_the_driver() -> None:
    gpu = Gpu(3, "GPU-a", "Tesla T4", 15109, "00000000:3B:00.0", 1, ((0, 50),))
    assert cards([gpu], {}) == (Card(3, "Tesla T4", 15109, "GPU-a", 1, ((0, 50),)),)


def test_an_unhealthy_card_stays_listed_with_its_reason() -> None:
    gpus = [Gpu(0, "GPU-a", "T4", 1), Gpu(1, "GPU-b", "T4", 1)]
    assert [card.why_not for card in cards(gpus, {"GPU-b": "Xid 79"})] == ["", "Xid 79"]


def test_a_card_with_mig_instances_is_not_shared_and_an_error_is_named_first() -> None:
    gpus = [Gpu(0, "GPU-a", "A100", 1, is_mig=True), Gpu(1, "GPU-b", "A100", 1, is_mig=True)]
    said = [card.why_not for card in cards(gpus, {"GPU-b": "Xid 79"})]
    assert said == ["it is cut into MIG instances, which are not shared", "Xid 79"]


def test_time_slices_are_set_for_all_cards_or_per_card() -> None:
    gpus = [Gpu(0, "GPU-a", "T4", 1), Gpu(1, "GPU-b", "T4", 1)]
    assert [card.replicas for card in cards(gpus, {}, 4)] == [4, 4]
    assert [card.replicas for card in cards(gpus, {}, {"GPU-b": 10})] == [1, 10]


def test_a_card_of_unknown_memory_has_none() -> None:
    assert cards([Gpu(0, "GPU-a", "T4", 0)], {})[0].memory_mib is None


def test_a_missing_card_yields_its_index_to_a_present_one() -> None:
    gpus = [Gpu(0, "GPU-b", "T4", 1), Gpu(1, "GPU-c", "T4", 1), Gpu(0, "GPU-a", "T4", 1)]
    assert [(card.uuid, card.index) for card in cards(gpus, {})] == [("GPU-b", 0), ("GPU-c", 1), ("GPU-a", 2)]


@given(st.lists(st.integers(0, 8), max_size=8))
def test_every_card_has_a_unique_index_that_the_inventory_accepts(minors: list[int]) -> None:
    gpus = [Gpu(minor, f"GPU-{place}", "T4", 15109) for place, minor in enumerate(minors)]
    found = cards(gpus, {})
    assert read_inventory(write_inventory(found)).cards == found
    firsts = {minor: gpu.uuid for gpu, minor in reversed(list(zip(gpus, minors, strict=True)))}
    assert {card.index: card.uuid for card in found}.items() >= firsts.items()
