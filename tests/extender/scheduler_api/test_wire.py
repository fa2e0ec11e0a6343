"""The bytes that are put together here and not by a library say what a library would."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scheduler_api import wire
from halfcard.pod.stored_pod import StoredPod

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True, max_size=12)


def call_of(names: list[str]) -> wire.NodesCall:
    return wire.NodesCall(StoredPod(), names, None)


@given(names=NAMES, reasons=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3))
def test_every_refused_node_has_its_reason_whatever_its_name(names: list[str], reasons: list[str]) -> None:
    refused: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        refused.setdefault(reasons[number % len(reasons)], []).append(name)
    answer = json.loads(wire.filter_answer(call_of(names), [], refused))
    assert answer == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {name: reason for reason, names in refused.items() for name in names},
        "Error": "",
    }


@given(names=NAMES, reasons=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3))
def test_shared_names_are_encoded_like_a_list(names: list[str], reasons: list[str]) -> None:
    kept = wire.SharedNames(names)
    for reason in (*reasons, *reasons):
        assert wire.filter_answer(call_of(names), kept, {reason: kept}) == wire.filter_answer(
            call_of(names), names, {reason: names}
        )


@pytest.mark.parametrize("why", ["no", 'a "quoted" \\ and 50 % free', "ж💥"])
def test_an_error_answer_has_no_nodes(why: str) -> None:
    answer = json.loads(wire.filter_error(why))
    assert answer.pop("Error") == why.replace(" %", " per cent")
    assert answer == {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}}


def scored(scores: list[int]) -> dict[str, int]:
    answer: list[dict[str, Any]] = json.loads(
        wire.prioritize_answer([f"n{at}" for at in range(len(scores))], bytes(scores))
    )
    return {each["Host"]: each["Score"] for each in answer}


def test_every_node_of_a_short_list_has_a_score() -> None:
    assert scored([0, 10, 3]) == {"n0": 0, "n1": 10, "n2": 3}


def test_nodes_with_score_0_are_omitted_when_there_are_thousands() -> None:
    """Decodes scores like kube-scheduler, which takes a missing score as 0."""
    assert scored([0] * 2000 + [10, 3] + [0] * 2000) == {"n2000": 10, "n2001": 3}


@pytest.mark.parametrize(("common", "expected"), [(1, {"n2000": 9, "n2001": 2}), (3, {"n2000": 7}), (4, None)])
def test_a_low_score_of_thousands_is_omitted_and_better_scores_keep_their_distance(
    common: int, expected: dict[str, int] | None
) -> None:
    found = scored([common] * 2000 + [10, 3, 0])
    assert found == expected if expected else len(found) == 2003
