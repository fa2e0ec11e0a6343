"""The content of a node after the agent's patch, also if others write to it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.advertise.announcement import Announcement, announcement, isolation_condition
from deviceplugin.advertise.node_patch import patch
from halfcard import names
from halfcard.cards import Card
from halfcard.cluster_view import read_node
from halfcard.inventory import write_inventory
from halfcard.isolation.mode import ChosenMode, IsolationMode
from tests.kube.object_server import merged

from ..nodes import GOOD, MIB, NOW, SICK, announcement_of, node

LATER: Final = "2026-11-21T13:00:00Z"


def after(there: dict[str, Any], announced: Announcement, now: str = NOW) -> dict[str, Any]:
    """The node when both patches have been applied."""
    wanted = patch(there, announced, now)
    found: dict[str, Any] = merged(there, {"metadata": wanted.metadata, "status": wanted.status})
    return found


def labels(there: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in there["metadata"]["labels"].items() if key.startswith(("nvidia", "halfcard"))}


def condition(there: dict[str, Any]) -> dict[str, str]:
    (found,) = [each for each in there["status"]["conditions"] if each["type"] == names.CARDS_CONDITION]
    return dict(found)


def test_a_new_node_gets_all_fields_and_keeps_its_own() -> None:
    found = after(node(), announcement_of(GOOD))
    assert found["metadata"]["annotations"][names.INVENTORY] == write_inventory([GOOD])
    assert found["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] == "0"
    assert labels(found) == {
        names.NVIDIA_LABEL_COUNT: "1",
        names.NVIDIA_LABEL_MEMORY: "15109",
        names.NVIDIA_LABEL_PRODUCT: "Tesla-T4",
        names.NVIDIA_LABEL_REPLICAS: "1",
    }
    assert found["status"]["capacity"] == found["status"]["allocatable"] == {"cpu": "8", MIB: "15109"}
    assert [each["type"] for each in found["status"]["conditions"]] == ["Ready", names.CARDS_CONDITION]


def isolation(there: dict[str, Any]) -> dict[str, str]:
    found = [each for each in there["status"]["conditions"] if each["type"] == names.ISOLATION_CONDITION]
    return dict(found[0]) if found else {}


def held(mode: IsolationMode, why_not: str = "", *, problem: str = "") -> Announcement:
    return announcement_of(GOOD, isolation=isolation_condition(ChosenMode(mode, problem), why_not))


@pytest.mark.parametrize(
    ("announced", "status", "reason", "message"),
    [
        (held(IsolationMode.WARN), "True", "SharesHeld", "containers of shares that start now are held"),
        (
            held(IsolationMode.WARN, "no CDI"),
            "False",
            "SharesNotHeld",
            "no CDI; isolation is warn: .* nothing holds them",
        ),
        (
            held(IsolationMode.ENFORCE, "no CDI"),
            "False",
            "SharesNotHeld",
            "no CDI; isolation is enforce: .* do not start",
        ),
        (
            held(IsolationMode.ENFORCE, problem="no mode"),
            "True",
            "SharesHeld",
            "label halfcard.dev/isolation: no mode; ",
        ),
    ],
)
def test_a_node_with_isolation_says_whether_shares_are_held_and_why_not(
    announced: Announcement, status: str, reason: str, message: str
) -> None:
    found = after(node(), announced)
    assert (isolation(found)["status"], isolation(found)["reason"]) == (status, reason)
    assert re.match(message, isolation(found)["message"])
    assert condition(found)["reason"] == "CardsInOrder"
    assert patch(found, announced, LATER) == ({}, {}, ())


def test_the_condition_of_isolation_is_only_on_nodes_that_had_it_on() -> None:
    off = held(IsolationMode.OFF)
    assert isolation(after(node(), off)) == {}
    assert isolation(after(after(node(), held(IsolationMode.WARN)), off))["reason"] == "IsolationOff"


def test_unchanged_fields_are_not_written_again() -> None:
    there = after(node(), announcement_of(GOOD, SICK))
    assert patch(there, announcement_of(GOOD, SICK), LATER) == ({}, {}, ())


def test_another_spelling_of_an_amount_is_not_a_difference() -> None:
    there = after(node(), announcement_of(total=60000))
    there["status"]["capacity"][MIB] = "60k"
    assert patch(there, announcement_of(total=60000), LATER).status == {}


def test_the_extender_reads_the_published_cards() -> None:
    cards = (replace(GOOD, replicas=4), replace(SICK, replicas=4))
    found = read_node(after(node(), announcement_of(*cards, slices=names.NVIDIA_GPU_SHARED)))
    assert getattr(found, "cards", None) == cards
    assert getattr(found, "slices", None) == names.NVIDIA_GPU_SHARED


# --- labels -----------------------------------------------------------------------------------------------------------

LABELS: Final[dict[str, tuple[tuple[Card, ...], str, dict[str, str]]]] = {
    "what cards do not have in common is not said": (
        (GOOD, replace(SICK, model="NVIDIA A10", memory_mib=23028)),
        "",
        {names.NVIDIA_LABEL_COUNT: "2", names.NVIDIA_LABEL_REPLICAS: "1"},
    ),
    "slices that look like cards are recognised by the name": (
        (replace(GOOD, replicas=4),),
        names.NVIDIA_GPU,
        {names.NVIDIA_LABEL_PRODUCT: "Tesla-T4-SHARED", names.NVIDIA_LABEL_REPLICAS: "4"},
    ),
    "slices under a name of their own": (
        (replace(GOOD, replicas=4),),
        names.NVIDIA_GPU_SHARED,
        {names.NVIDIA_LABEL_PRODUCT: "Tesla-T4", names.NVIDIA_LABEL_REPLICAS: "4"},
    ),
    "a name that is no label": (
        (replace(GOOD, model="NVIDIA  RTX™ 6000 (Ada)/48GB " + "x" * 80),),
        names.NVIDIA_GPU,
        {names.NVIDIA_LABEL_PRODUCT: "NVIDIA-RTX-6000-Ada48GB-" + "x" * 32 + "-SHARED"},
    ),
}


@pytest.mark.parametrize(("cards", "slices", "expected"), LABELS.values(), ids=LABELS)
def test_labels_are_written_as_nvidias_feature_discovery_does(
    cards: tuple[Card, ...], slices: str, expected: dict[str, str]
) -> None:
    found = labels(after(node(), announcement_of(*cards, slices=slices)))
    assert expected.items() <= found.items()
    assert all(len(value) <= 63 for value in found.values())
    assert names.NVIDIA_LABEL_PRODUCT not in found or names.NVIDIA_LABEL_PRODUCT in expected


def test_labels_of_other_programs_stay() -> None:
    foreign = {names.NVIDIA_LABEL_PRODUCT: "Tesla-T4-SHARED", names.NVIDIA_LABEL_COUNT: "1"}
    there = after(node(labels=foreign), announcement_of(GOOD))
    assert foreign.items() <= labels(there).items()
    assert labels(there)[names.NVIDIA_LABEL_MEMORY] == "15109"
    there = after(there, announcement_of(GOOD, SICK))
    assert foreign.items() <= labels(there).items()


def test_a_label_that_another_program_changes_belongs_to_it() -> None:
    there = after(node(), announcement_of(GOOD))
    there["metadata"]["labels"][names.NVIDIA_LABEL_COUNT] = "7"
    there = after(there, announcement_of(GOOD, SICK))
    assert labels(there)[names.NVIDIA_LABEL_COUNT] == "7"
    assert patch(there, announcement_of(GOOD, SICK), NOW) == ({}, {}, ())


def test_labels_change_with_the_cards_and_are_removed_with_them() -> None:
    there = after(node(), announcement_of(GOOD))
    there = after(there, announcement_of(GOOD, replace(SICK, model="A10")))
    assert labels(there).keys() == {
        names.NVIDIA_LABEL_COUNT,
        names.NVIDIA_LABEL_MEMORY,
        names.NVIDIA_LABEL_REPLICAS,
    }
    assert labels(after(there, announcement((), {}))) == {}


def test_simulated_cards_are_marked() -> None:
    there = after(node(), announcement_of(is_made_up=True))
    assert labels(there)[names.MADE_UP_LABEL] == "true"
    assert names.MADE_UP_LABEL not in labels(after(there, announcement_of()))


# --- totals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wiped", [None, "0"])
def test_a_total_that_kubelet_removed_is_written_again(wiped: str | None) -> None:
    there = after(node(), announcement_of())
    del there["status"]["capacity"][MIB]
    if wiped is not None:
        there["status"]["capacity"][MIB] = wiped
    assert after(there, announcement_of())["status"]["capacity"][MIB] == "15109"


def test_a_total_of_another_program_stays_and_is_reported() -> None:
    there = node(capacity={MIB: "15109"})
    wanted = patch(there, announcement_of(total=12000), NOW)
    assert after(there, announcement_of(total=12000))["status"]["capacity"][MIB] == "15109"
    (message,) = wanted.foreign
    assert message.startswith('status.capacity["volcano.sh/gpu-memory"]: got "15109", which another program wrote; ')
    there["status"]["capacity"][MIB] = "0"
    assert after(there, announcement_of(total=12000))["status"]["capacity"][MIB] == "12000"


def test_gpushares_count_of_cards_is_taken_over_if_it_is_right() -> None:
    there = node(capacity={names.ALIYUN_GPU_COUNT: "2"})
    wanted = announcement((GOOD, SICK), {names.ALIYUN_GPU_COUNT: 2})
    assert patch(there, wanted, NOW).foreign == ()
    three = announcement((GOOD, SICK), {names.ALIYUN_GPU_COUNT: 3})
    assert len(patch(there, three, NOW).foreign) == 1
    assert after(after(there, wanted), three)["status"]["capacity"][names.ALIYUN_GPU_COUNT] == "3"


def test_only_totals_that_are_no_longer_advertised_are_removed() -> None:
    there = after(node(capacity={names.ALIYUN_GPU_MEM: "14"}), announcement_of())
    there = after(there, announcement_of(total=None))
    assert there["status"]["capacity"] == there["status"]["allocatable"] == {"cpu": "8", names.ALIYUN_GPU_MEM: "14"}
    assert patch(there, announcement_of(total=None), NOW) == ({}, {}, ())


# --- the condition ----------------------------------------------------------------------------------------------------


def test_the_condition_names_the_unhealthy_cards_and_since_when() -> None:
    there = after(node(), announcement_of(GOOD))
    assert condition(there) == {
        "type": "HalfcardCards",
        "status": "True",
        "reason": "CardsInOrder",
        "message": "cards in order: 1",
        "lastHeartbeatTime": NOW,
        "lastTransitionTime": NOW,
    }
    there = after(there, announcement_of(GOOD, SICK), LATER)
    assert condition(there) == {
        "type": "HalfcardCards",
        "status": "False",
        "reason": "CardsOutOfOrder",
        "message": "card 1 (GPU-1): Xid 79: it has fallen off the bus",
        "lastHeartbeatTime": LATER,
        "lastTransitionTime": LATER,
    }
    other = after(there, announcement_of(GOOD, replace(SICK, why_not="Xid 48")), "2026-11-21T14:00:00Z")
    assert condition(other)["lastTransitionTime"] == LATER
    assert condition(other)["lastHeartbeatTime"] == "2026-11-21T14:00:00Z"


def test_the_inventory_stays_while_the_driver_does_not_answer() -> None:
    there = after(node(), announcement_of(GOOD))
    silent = after(there, announcement((), {MIB: 0}, trouble="the driver does not answer"))
    assert silent["metadata"] == there["metadata"]
    assert condition(silent)["status"] == "False"
    assert condition(silent)["reason"] == "DriverUnavailable"
    assert condition(silent)["message"] == "the driver does not answer"


def test_a_message_is_never_longer_than_a_condition_allows() -> None:
    many = [replace(SICK, index=number, why_not="x" * 200) for number in range(16)]
    assert len(condition(after(node(), announcement_of(*many)))["message"].encode()) <= 900


# --- laws -------------------------------------------------------------------------------------------------------------

JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ODD: Final = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"labels": JSON, "annotations": JSON})},
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "capacity": JSON | st.dictionaries(st.just(MIB), JSON),
                "conditions": JSON | st.lists(st.fixed_dictionaries({"type": JSON})),
            },
        )
    },
)


@given(ODD, st.none() | JSON)
def test_any_object_gets_a_patch(there: dict[str, Any], written: object) -> None:
    annotations = there["metadata"].get("annotations")
    if isinstance(annotations, dict):
        annotations[names.ANNOUNCED] = written
    assert patch(there, announcement_of(GOOD), NOW).metadata["annotations"][names.INVENTORY] == write_inventory([GOOD])


SAID: Final = st.builds(
    lambda cards, total, made_up, trouble: announcement_of(*cards, total=total, is_made_up=made_up, trouble=trouble),
    st.sampled_from([(GOOD,), (SICK,), (GOOD, SICK), (GOOD, replace(SICK, model="A10", replicas=2))]),
    st.none() | st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from(["", "gone"]),
)
FOREIGN: Final = st.fixed_dictionaries(
    {}, optional={names.NVIDIA_LABEL_COUNT: st.just("9"), names.NVIDIA_LABEL_PRODUCT: st.just("Tesla-T4")}
)


@given(st.lists(SAID, min_size=1, max_size=4), FOREIGN, st.sampled_from([{}, {MIB: "0"}, {MIB: "7"}]))
def test_after_a_patch_no_difference_is_left_and_foreign_values_stay(
    story: list[Announcement], foreign: dict[str, str], capacity: dict[str, str]
) -> None:
    there = node(labels=foreign, capacity=capacity)
    for announced in story:
        there = after(there, announced)
        assert patch(there, announced, LATER)[:2] == ({}, {})
        assert foreign.items() <= labels(there).items()
        assert capacity.get(MIB) != "7" or there["status"]["capacity"][MIB] == "7"
