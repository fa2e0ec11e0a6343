from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from extender.explain.bound import BoundPod
from extender.explain.explanation import Explanation, PodState, describe_claim, explain
from extender.explain.pending import NodeEvictions, NodeFit, PendingPod, Victim, fewest_evictions
from extender.packing.policies.binpack import Binpack
from extender.state import State
from halfcard import names
from halfcard.cards import Card
from halfcard.inventory import write_inventory
from halfcard.placing.pod_facts import read_facts
from halfcard.pod.stored_pod import StoredPod
from tests.builders import PodBuilder, pod

from ..populated import CARD_MIB, node, state_of, stored

TRAIN: Final = pod("train").asks(core=30, memory=20)


def explained(state: State, asking: StoredPod) -> Explanation:
    state.put_pod(asking)
    return explain(state, read_facts(asking, state.dialects), Binpack())


def pending(nodes: Sequence[dict[str, Any]], pods: Sequence[StoredPod], asking: StoredPod) -> PendingPod:
    found = explained(state_of(nodes, pods), asking)
    assert found.standing is PodState.PENDING and found.prospects is not None
    return found.prospects


def view(prospects: PendingPod, name: str) -> NodeFit:
    return next(node for node in prospects.nodes if node.name == name)


# --- pending


def tenant(name: str, card: str, *, core: int = 0, priority: int = 0, **asks: int) -> StoredPod:
    asking = pod(name).asks(**({"core": core, "memory": 4} if core else asks))
    return stored(asking, on=card.rpartition("-")[0], cards=[card], priority=priority)


CARDS = {
    "free": ([], {}, ""),
    "too few cores": ([tenant("a", "gpu1-0", core=80)], {}, "too few cores"),
    "locked": ([tenant("a", "gpu1-0", sgpu=1)], {}, "in use in another way (halves)"),
    "whole": ([tenant("a", "gpu1-0", gpu=1)], {}, "in use in another way (exclusive)"),
    "cordoned": ([], {names.CORDONED_CARDS: "0"}, "cordoned"),
}


def test_a_node_that_cannot_hold_shares_says_why_and_takes_whole_cards() -> None:
    card = Card(0, "T4", CARD_MIB, uuid="gpu1-0", not_held="cuInit was answered 999")
    nodes = [node(annotations={names.INVENTORY: write_inventory([card])})]
    found = view(pending(nodes, [], stored(TRAIN)), "gpu1")
    assert found.reason == (
        "isolation is enforce, and no card can hold containers to their share: cuInit was answered 999"
    )
    assert [each.reason for each in found.cards] == ["shares of it are not held"]
    assert view(pending(nodes, [], stored(pod("whole").asks(gpu=1))), "gpu1").fits


@pytest.mark.parametrize(("pods", "annotations", "reason"), CARDS.values(), ids=CARDS.keys())
def test_each_card_has_exactly_one_reason(pods: list[StoredPod], annotations: dict[str, str], reason: str) -> None:
    found = pending([node(annotations=annotations)], pods, stored(TRAIN))
    assert [card.reason for card in view(found, "gpu1").cards] == [reason]


WORDED = {
    "a whole one": (pod("new").asks(gpu=1), [tenant("a", "gpu1-0", core=10)], "not wholly free"),
    "a half": (
        pod("new").asks(sgpu=1),
        [tenant("a", "gpu1-0", sgpu=1), tenant("b", "gpu1-0", sgpu=1)],
        "both halves are taken",
    ),
    "too much memory": (pod("new").asks(core=10, memory=1 + CARD_MIB // 256), [], "too little memory"),
    "another model": (
        pod("new").asks(core=10, memory=4).annotated({names.ASK_MODEL: "A100"}),
        [],
        "not among the requested cards",
    ),
    "another card": (
        pod("new").asks(core=10, memory=4).annotated({names.ASK_UUID: "gpu9-0"}),
        [],
        "not among the requested cards",
    ),
}


@pytest.mark.parametrize(("asking", "pods", "reason"), WORDED.values(), ids=WORDED.keys())
def test_the_reason_of_a_card_speaks_of_that_card(asking: PodBuilder, pods: list[StoredPod], reason: str) -> None:
    (card,) = view(pending([node()], pods, stored(asking)), "gpu1").cards
    assert card.reason == reason


def test_a_card_shows_its_amounts_and_its_pods() -> None:
    found = pending([node()], [tenant("a", "gpu1-0", core=80)], stored(TRAIN))
    (card,) = view(found, "gpu1").cards
    assert (card.cores_free, card.memory_mib_free, card.pods) == (20, CARD_MIB - 1024, ("ns/a",))


def test_cards_out_of_order_and_cards_of_unknown_memory_have_their_own_reasons() -> None:
    found = pending([node("gpu1", mib=None), node("cpu1", cards=0)], [], stored(TRAIN))
    assert [card.reason for card in view(found, "gpu1").cards] == ["its memory is unknown"]
    assert view(found, "cpu1").reason == "no GPU known to Halfcard"


def test_nodes_that_fit_come_first_with_the_scores_of_the_policy() -> None:
    pods = [tenant("a", "gpu2-0", core=60), tenant("b", "gpu3-0", core=90)]
    found = pending([node("gpu1"), node("gpu2"), node("gpu3")], pods, stored(TRAIN))
    assert [(each.name, each.fits) for each in found.nodes] == [("gpu2", True), ("gpu1", True), ("gpu3", False)]
    assert (found.nodes[0].score, found.nodes[2].score) == (10, None)
    assert found.nearest is None


def test_the_nearest_node_needs_the_fewest_evictions() -> None:
    pods = [
        tenant("a", "gpu1-0", core=50),
        tenant("b", "gpu1-0", core=50),
        tenant("c", "gpu2-0", core=90),
        tenant("d", "gpu3-0", core=90, priority=9),
    ]
    found = pending([node("gpu1"), node("gpu2"), node("gpu3")], pods, stored(pod("new").asks(gpu=1), priority=5))
    assert found.nearest == NodeEvictions("gpu2", (Victim("ns/c", 0),))


def test_fewest_evictions_is_none_where_the_pod_fits_somewhere() -> None:
    pods = [tenant("a", "gpu1-0", core=90), tenant("b", "gpu2-0", core=90, priority=9)]
    asking = read_facts(stored(TRAIN, priority=5), state_of([]).dialects)
    assert fewest_evictions(
        state_of([node("gpu1"), node("gpu2")], pods), asking, ["gpu1", "gpu2", "gpu3"]
    ) == NodeEvictions("gpu1", (Victim("ns/a", 0),))
    assert fewest_evictions(state_of([node("gpu2")], pods), asking, ["gpu1", "gpu2", "gpu3"]) is None
    assert fewest_evictions(state_of([node("gpu1"), node("gpu3")], pods), asking, ["gpu1", "gpu2", "gpu3"]) is None


def test_evictions_of_higher_priority_are_listed_separately() -> None:
    pods = [tenant("a", "gpu1-0", core=90, priority=9)]
    found = pending([node()], pods, stored(TRAIN, priority=5))
    assert found.nearest is None
    assert found.nearest_of_any_priority is not None
    assert [each.pod for each in found.nearest_of_any_priority.pods] == ["ns/a"]


def test_there_is_no_nearest_node_where_no_eviction_helps() -> None:
    found = pending([node()], [tenant("a", "gpu1-0", core=10)], stored(pod("new").asks(gpu=2), priority=5))
    assert (found.nearest, found.nearest_of_any_priority) == (None, None)


def test_forged_records_and_malformed_amounts_are_reported_first() -> None:
    forged = explained(state_of([node()]), stored(TRAIN, record={"tencent.com/predicate-gpu-idx-0": "0"}))
    odd = explained(state_of([node()]), stored(pod("odd").asks(core="1.5", memory=4)))
    for found, expected in ((forged, "tencent.com/predicate-gpu-idx-0"), (odd, 'got "1.5"')):
        assert expected in found.trouble
        assert found.prospects is None and found.has_nowhere_to_go


# --- bound

AT_NS = "1666569600000000000"
RECORDS = {
    "Halfcard": (TRAIN, {names.PLACEMENT: '{"node": "gpu1", "cards": {"containers-0": ["gpu1-1"]}}'}),
    "gpu-manager": (
        TRAIN,
        {
            "tencent.com/predicate-gpu-idx-0": "1",
            "tencent.com/predicate-node": "gpu1",
            "tencent.com/predicate-time": AT_NS,
        },
    ),
    "gpushare": (
        pod("train").asks(gpu_mem=2),
        {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": AT_NS},
    ),
    "Volcano": (
        pod("train").asks(gpu_memory=2048),
        {"volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": AT_NS},
    ),
}


@pytest.mark.parametrize(("system", "asking", "record"), [(key, *value) for key, value in RECORDS.items()], ids=RECORDS)
def test_a_bound_pod_shows_which_system_recorded_its_cards(
    system: str, asking: PodBuilder, record: dict[str, str]
) -> None:
    where = placed(state_of([node(cards=2)]), stored(asking, on="gpu1", record=record))
    assert (where.node, where.recorded_by) == ("gpu1", system)
    assert [[card.index for card in grant.cards] for grant in where.grants] == [[1]]
    assert where.since == ("" if system == "Halfcard" else "2022-10-24T00:00:00Z")


def test_cards_are_a_guess_without_a_record_and_empty_on_an_unknown_node() -> None:
    state = state_of([node()])
    guess, nowhere = placed(state, stored(TRAIN, on="gpu1")), placed(state, stored(TRAIN, on="gone"))
    assert (guess.recorded_by, guess.grants[0].cards[0].index) == ("", 0)
    assert nowhere.grants == ()


def test_each_container_of_a_share_shows_what_holds_it() -> None:
    asking = pod("p").asks(core=30, memory=20).asks(core=20, memory=20).asks(core=100, memory=59)
    record = {names.HELD_BY: '{"containers-0":{"by":["library"]},"containers-2":{"by":["library"]}}'}
    where = placed(state_of([node(cards=2)]), stored(asking, on="gpu1", record=record))
    assert [grant.held for grant in where.grants] == [
        "held to its share by the isolation libraries",
        "not held to its share, as far as its node's agent has recorded",
        "",
    ]


@pytest.mark.parametrize("written", ["soon", "9" * 40, "-1", "²"])
def test_an_invalid_time_is_not_shown(written: str) -> None:
    record = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": written}
    assert placed(state_of([node()]), stored(pod("p").asks(gpu_mem=2), on="gpu1", record=record)).since == ""


def test_neighbours_are_the_pods_on_the_same_card() -> None:
    pods = [tenant("beside", "gpu1-0", core=20), tenant("elsewhere", "gpu1-1", core=20)]
    where = placed(state_of([node(cards=2)], pods), stored(TRAIN, on="gpu1", cards=["gpu1-0"]))
    assert [each.title for each in where.grants[0].cards[0].neighbours] == ["ns/beside"]


def placed(state: State, pod_there: StoredPod) -> BoundPod:
    found = explained(state, pod_there)
    assert found.standing is PodState.BOUND and found.whereabouts is not None
    return found.whereabouts


# --- neither


def test_pods_without_claims_and_ended_pods_have_their_own_states() -> None:
    state = state_of([node()])
    assert explained(state, stored(pod("plain").container())).standing is PodState.NO_CARDS
    over = explained(state, stored(TRAIN, on="gpu1", cards=["gpu1-0"], phase="Succeeded"))
    assert (over.standing, over.has_nowhere_to_go) == (PodState.OVER, False)


SPOKEN = {
    "30 % and 5120 MiB of a card": TRAIN,
    "2 whole cards": pod("p").asks(core=200, memory=8),
    "a half of each of 2 cards": pod("p").asks(sgpu=2),
    "2048 MiB of a card": pod("p").asks(gpu_mem=2),
    "3 time slices": pod("p").asks(gpu_shared=3),
    "30 % and 3000 MiB of each of 2 cards": pod("p").asks(gpu=2, gpumem=3000, gpucores=30),
}


@pytest.mark.parametrize(("words", "asking"), SPOKEN.items(), ids=SPOKEN.keys())
def test_the_claim_of_a_container_is_described_in_words(words: str, asking: PodBuilder) -> None:
    facts = read_facts(stored(asking), state_of([]).dialects)
    assert [describe_claim(need.claim) for need in facts.demand.needs] == [words]


def test_a_node_that_does_not_publish_a_requested_resource_is_refused() -> None:
    """Its cards would do, and the scheduler counts by name before it asks about cards."""
    tencent = {names.VCUDA_CORE: "100", names.VCUDA_MEMORY: "64"}
    nodes = [node("gpu1", capacity=tencent), node("other", capacity={names.ALIYUN_GPU_MEM: "16"})]
    taken = stored(pod("a").asks(core=80, memory=4), on="gpu1", cards=["gpu1-0"])
    found = pending(nodes, [taken], stored(TRAIN, priority=1))
    assert view(found, "other").reason == f"does not publish {names.VCUDA_CORE}, {names.VCUDA_MEMORY}"
    assert found.nearest is not None and found.nearest.node == "gpu1"


def test_memory_that_whole_cards_name_is_counted_as_the_scheduler_counts_it() -> None:
    units = 2 * (CARD_MIB // 256)
    two_cards = node(cards=2, capacity={names.VCUDA_CORE: "200", names.VCUDA_MEMORY: str(units)})
    why = f"has {units} of {names.VCUDA_MEMORY} free, of {units + 1} that the pod requests"
    for more, reason in ((0, ""), (1, why)):
        found = pending([two_cards], [], stored(pod("w").asks(core=200, memory=units + more)))
        assert view(found, "gpu1").reason == reason


def test_a_resource_that_no_node_publishes_refuses_no_node() -> None:
    found = pending([node("gpu1", capacity={names.NVIDIA_GPU: "1"})], [], stored(pod("h").asks(gpu=1, gpumem=3000)))
    assert view(found, "gpu1").fits
