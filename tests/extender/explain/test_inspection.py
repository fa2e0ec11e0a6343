from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, MutableMapping
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from fastapi import FastAPI

from extender.app import _for_people
from extender.explain.inspection import Amount, NodeInspection, gpushare_json, inspect, inspect_json
from extender.inspection_stream import OneByOne, inspection_parts
from extender.state import State
from halfcard import names
from halfcard.dialects import ALL
from halfcard.placing.node_totals import offers
from halfcard.pod.stored_pod import StoredPod
from tests.admission.asgi import ask
from tests.builders import pod

from ..populated import CARD_MIB, SEED_RESOURCES, node, state_of, stored

GIB: Final = 1024
TABLE: Final = offers(ALL)
A10_MIB: Final = 86 * 256


def seen(state: State, name: str = "gpu1") -> NodeInspection:
    return inspect(state, state.nodes()[name], TABLE)


# --- resources: the numbers of the mixed node

HALVES = stored(pod("halves").asks(sgpu=2), on="a10", cards=["a10-0", "a10-1"])
MEMORY = stored(pod("memory").asks(tuya_memory=10), on="a10", cards=["a10-2"])
WHOLE = stored(pod("whole").asks(gpu=1), on="a10", cards=["a10-3"])
STEPS = {
    "no pods": ([], (4, 0), (8, 0), (344, 0)),
    "two halves lock two cards": ([HALVES], (2, 0), (8, 2), (172, 0)),
    "memory locks another": ([HALVES, MEMORY], (1, 0), (6, 2), (172, 10)),
    "a whole card takes the last": ([HALVES, MEMORY, WHOLE], (1, 1), (4, 2), (86, 10)),
    "the halves leave": ([MEMORY, WHOLE], (3, 1), (4, 0), (258, 10)),
    "all but the whole card leave": ([WHOLE], (4, 1), (6, 0), (258, 0)),
}


@pytest.mark.parametrize(("pods", "gpu", "sgpu", "memory"), STEPS.values(), ids=STEPS.keys())
def test_a_mixed_node_offers_what_its_pods_use_and_what_is_free(
    pods: list[StoredPod], gpu: tuple[int, int], sgpu: tuple[int, int], memory: tuple[int, int]
) -> None:
    published = dict(zip(SEED_RESOURCES, ("4", "8", "344"), strict=True))
    state = state_of([node("a10", 4, A10_MIB, capacity=published)], pods)
    expected = {name: Amount(*each) for name, each in zip(SEED_RESOURCES, (gpu, sgpu, memory), strict=True)}
    assert seen(state, "a10").resources == expected


def test_the_amounts_follow_the_pods() -> None:
    published = dict(zip(SEED_RESOURCES, ("4", "8", "344"), strict=True))
    state = state_of([node("a10", 4, A10_MIB, capacity=published)])
    found = []
    for each in (HALVES, MEMORY, WHOLE):
        found.append(totals_of(state))
        state.put_pod(each)
    found.append(totals_of(state))
    assert found == [(4, 8, 344), (2, 8, 172), (1, 6, 172), (1, 4, 86)]
    for each in (WHOLE, MEMORY, HALVES):
        assert totals_of(state) == found.pop()
        state.end_pod(each.meta.uid)
    assert totals_of(state) == found.pop()


def totals_of(state: State) -> tuple[int | None, ...]:
    found = seen(state, "a10").resources
    return tuple(found[name].total for name in SEED_RESOURCES)


def test_an_unpublished_resource_is_shown_while_a_pod_requests_it() -> None:
    asking = stored(pod("p").asks(gpu_mem=2), on="gpu1", cards=["gpu1-0"])
    published = {"cpu": "8", "aliyun.com/gpu-count": "1", "tencent.com/vcuda-core": "100"}
    assert set(seen(state_of([node(capacity=published)])).resources) == {"tencent.com/vcuda-core"}
    assert set(seen(state_of([node(capacity=published)], [asking])).resources) == {
        "aliyun.com/gpu-mem",
        "tencent.com/vcuda-core",
    }


def test_a_newly_published_resource_is_shown() -> None:
    state = state_of([node()])
    state.put_node(node(capacity={"nvidia.com/gpu": "1"}))
    assert seen(state).resources == {"nvidia.com/gpu": Amount(1, 0)}


# --- cards and who is on them


def test_used_amounts_add_up_in_every_card_mode() -> None:
    pods = [
        stored(pod("share").asks(core=30, memory=8), on="gpu1", cards=["gpu1-0"]),
        stored(pod("memory").asks(tuya_memory=4), on="gpu1", cards=["gpu1-0"]),
        stored(pod("half").asks(sgpu=1), on="gpu1", cards=["gpu1-1"]),
        stored(pod("whole").asks(gpu=1), on="gpu1", cards=["gpu1-2"]),
    ]
    cards = seen(state_of([node(cards=4)], pods)).cards
    found = [(str(card.mode), card.cores.used, card.memory_mib.used) for card in cards]
    assert found == [
        ("shared", 30, 3072),
        ("halves", 50, CARD_MIB // 2),
        ("exclusive", 100, CARD_MIB),
        ("free", 0, 0),
    ]
    for card in cards:
        assert card.cores.used == sum(each.cores for each in card.pods)
        assert card.memory_mib.used == sum(each.memory_mib for each in card.pods)


def test_pods_without_a_record_are_marked_and_pods_without_a_card_are_listed() -> None:
    pods = [
        stored(pod("written").asks(core=10, memory=4), on="gpu1", cards=["gpu1-0"]),
        stored(pod("guessed").asks(core=10, memory=4), on="gpu1"),
        stored(pod("cardless").asks(core=10, memory=4), on="cpu1"),
    ]
    state = state_of([node(), node("cpu1", cards=0)], pods)
    assert {each.title: each.recorded for each in seen(state).cards[0].pods} == {
        "ns/guessed": False,
        "ns/written": True,
    }
    assert seen(state, "cpu1").without_card == ("ns/cardless",)
    assert (seen(state).pods, seen(state, "cpu1").pods) == (2, 1)


def test_a_card_out_of_order_says_why_and_an_overfull_card_is_an_inconsistency() -> None:
    pods = [stored(pod(name).asks(core=70, memory=4), on="gpu1", cards=["gpu1-1"]) for name in ("a", "b")]
    found = seen(state_of([node(cards=2, annotations={names.CORDONED_CARDS: "0"})], pods))
    assert [card.out_of_order for card in found.cards] == ["cordoned", ""]
    assert any("ns/b" in doubt for doubt in found.doubts)


def test_the_json_has_the_same_content() -> None:
    state = state_of([node(address="10.0.0.1")], [stored(pod("p").asks(sgpu=1), on="gpu1", cards=["gpu1-0"])])
    found = json.loads(json.dumps(inspect_json(state, state.nodes()["gpu1"], TABLE)))
    assert found["address"] == "10.0.0.1"
    (card,) = found["cards"]
    assert (card["mode"], card["parts"]) == ("halves", {"total": 2, "used": 1})
    assert [(each["name"], each["recorded"]) for each in card["pods"]] == [("p", True)]


# --- gpushare's shape


def test_gpushare_tools_get_nodes_devices_and_pods_in_their_unit() -> None:
    pods = [stored(pod(f"binpack-{at}").asks(gpu_mem=at), on="gpu1", cards=["gpu1-0"]) for at in (1, 2)]
    state = state_of([node(cards=2, mib=14 * GIB)], pods)
    assert gpushare_json(state, state.nodes().values(), GIB) == {
        "nodes": [
            {
                "name": "gpu1",
                "totalGPU": 28,
                "usedGPU": 3,
                "devs": [
                    {
                        "id": 0,
                        "totalGPU": 14,
                        "usedGPU": 3,
                        "pods": [
                            {"name": "binpack-1", "namespace": "ns", "usedGPU": 1},
                            {"name": "binpack-2", "namespace": "ns", "usedGPU": 2},
                        ],
                    },
                    {"id": 1, "totalGPU": 14, "usedGPU": 0, "pods": []},
                ],
            }
        ]
    }


# --- by HTTP


def asked(state: State, path: str) -> tuple[int, dict[str, Any]]:
    """What people ask needs nothing of the scheduling but its state."""
    answer = ask(_for_people(cast(Any, SimpleNamespace(state=state)), TABLE, GIB), path, method="GET")
    return answer.status, json.loads(answer.body)


def test_a_node_is_inspected_by_name_in_both_formats() -> None:
    state = state_of([node(), node("gpu2")])
    one = inspect_json(state, state.nodes()["gpu2"], TABLE)
    assert asked(state, "/inspect/gpu2") == (200, json.loads(json.dumps(one)))
    assert asked(state, "/gpushare-scheduler/inspect/gpu2") == (200, gpushare_json(state, [state.nodes()["gpu2"]], GIB))
    assert [each["name"] for each in asked(state, "/inspect")[1]["nodes"]] == ["gpu1", "gpu2"]
    assert [each["name"] for each in asked(state, "/gpushare-scheduler/inspect")[1]["nodes"]] == ["gpu1", "gpu2"]


@pytest.mark.parametrize("path", ["/inspect/none", "/gpushare-scheduler/inspect/none"])
def test_an_unknown_node_is_an_error_in_the_same_format(path: str) -> None:
    status, found = asked(state_of([node()]), path)
    assert (status, found["nodes"]) == (404, [])
    assert "node none" in found["error"]


@pytest.mark.parametrize("path", ["/inspect", "/gpushare-scheduler/inspect"])
def test_no_node_is_an_empty_list(path: str) -> None:
    status, found = asked(state_of([]), path)
    assert (status, found["nodes"]) == (200, [])


@pytest.mark.parametrize("path", ["/inspect", "/gpushare-scheduler/inspect"])
async def test_other_calls_are_answered_while_all_nodes_are_read(path: str) -> None:
    state = state_of([node(f"gpu{number}") for number in range(50)])
    app = _for_people(cast(Any, SimpleNamespace(state=state)), TABLE, GIB)
    reading = asyncio.create_task(read_by_asgi(app, path))
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(json.loads(reading.result())["nodes"]) == 50
    assert turns > 50


async def read_by_asgi(app: FastAPI, path: str) -> bytes:
    pieces: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)  # the client stays
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        pieces.append(message.get("body", b""))

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path}
    await app({**scope, "headers": [], "query_string": b"", "root_path": "", "scheme": "http"}, receive, send)
    return b"".join(pieces)


async def test_other_calls_are_answered_between_any_two_nodes_of_any_number_of_inspections() -> None:
    taken: list[str] = []

    def parts(name: str) -> Iterator[bytes]:
        for _ in range(20):
            taken.append(name)
            yield b"{}"

    async def others() -> None:
        while True:
            taken.append("other")
            await asyncio.sleep(0)

    one_by_one, answering = OneByOne(), asyncio.create_task(others())
    await asyncio.gather(*(read(one_by_one.stream(parts(name))) for name in ("first", "second")))
    answering.cancel()
    turns = "".join("," if each == "other" else "x" for each in taken)
    assert "xx" not in turns
    assert taken.count("first") == taken.count("second") == 20


async def test_a_long_inspection_comes_in_pieces() -> None:
    pieces = await read(OneByOne().stream(iter([b"x" * 1000] * 1000)))
    assert len(b"".join(pieces)) == 1_000_000
    assert 64 * 1024 <= max(map(len, pieces)) <= 66 * 1024


async def read(pieces: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in pieces]


def test_a_node_that_is_removed_during_an_inspection_is_left_out() -> None:
    state = state_of([node(), node("gpu2")])
    parts = inspection_parts(state, TABLE)
    first = next(parts)
    state.drop_node("gpu2")
    assert [each["name"] for each in json.loads(first + b"".join(parts))["nodes"]] == ["gpu1"]
