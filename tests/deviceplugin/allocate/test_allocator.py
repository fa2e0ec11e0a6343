"""Allocate and PreStartContainer, from device ids to what the runtime reads: the exact grant, or an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from deviceplugin.allocate.slots import slot_name
from deviceplugin.inject.symlinks import SymlinkInjector
from deviceplugin.kubelet.channel import KubeletError
from deviceplugin.kubelet.messages import RefusedError
from halfcard import names
from halfcard.placing.records import RecordWriter
from tests.builders import pod
from tests.extender.pod_server import Fault

from ..node_world import World, running_world

SHARE: Final = pod().asks(core=30, memory=20)
LARGE: Final = pod().asks(core=80, memory=20)
WHOLE: Final = pod().asks(gpu=1)
CARD0, CARD1 = {"containers-0": ["GPU-0"]}, {"containers-0": ["GPU-1"]}


# --- Allocate ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as world:
        yield world


async def test_allocate_answers_a_slot_without_any_call(world: World) -> None:
    granted = world.allocator.allocate(names.VCUDA_CORE, ["hc-1", "hc-0"])
    assert granted.cdi == (f"halfcard.dev/slot={slot_name(names.VCUDA_CORE, ['hc-0', 'hc-1'])}",)
    assert not granted.devices and not granted.mounts and not granted.env
    assert not world.server.calls


async def test_allocate_refuses_more_than_one_slice_with_nvidias_message(world: World) -> None:
    world.single = frozenset({names.NVIDIA_GPU_SHARED})
    assert world.allocator.allocate(names.NVIDIA_GPU_SHARED, ["hc-1"]).cdi
    assert world.allocator.allocate(names.NVIDIA_GPU, ["hc-1", "hc-2"]).cdi
    with pytest.raises(RefusedError, match=r"maximum request size for shared resources is 1; found 2; .* request 1"):
        world.allocator.allocate(names.NVIDIA_GPU_SHARED, ["hc-1", "hc-2"])


async def test_allocate_refuses_ids_that_are_not_ours(world: World) -> None:
    with pytest.raises(RefusedError, match=r'invalid allocation request for "nvidia.com/gpu": unknown device: GPU-0'):
        world.allocator.allocate(names.NVIDIA_GPU, ["hc-1", "GPU-0"])


# --- exact ------------------------------------------------------------------------------------------------------------


async def test_a_recorded_container_gets_cards_and_limits_without_any_api_write(
    world: World,
) -> None:
    await world.run("p", SHARE.annotated({"tencent.com/vcuda-core-limit": "60"}), CARD1)
    for edits in world.edits("p"):
        assert [each["path"] for each in edits["deviceNodes"]] == ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    for limits in world.limits("p"):
        assert limits == {
            "version": 1,
            "namespace": "team",
            "pod": "p",
            "uid": "uid-p",
            "containers": ["containers-0"],
            "dialect": "tencent",
            "cards": [{"index": 1, "uuid": "GPU-1", "cores_pct": 30, "cores_limit_pct": 60, "memory_mib": 5120}],
            "held_by": None,
            "not_held": "isolation is off",
        }
    assert len(world.edits("p")) == 2 and world.cards("p") == {"GPU-1"}
    assert world.patches() == 0


async def test_a_start_uses_the_pod_that_the_watch_has_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.bind("p", SHARE, CARD1)
    world.admit("p")
    for reader in ("node_pods.read_facts", "allocate.allocator.recorded_share"):
        monkeypatch.setattr(f"deviceplugin.{reader}", None)
    await world.start("p")
    assert world.cards("p") == {"GPU-1"}


async def test_a_start_asks_the_api_server_when_the_watch_is_behind(world: World) -> None:
    world.bind("p", SHARE, CARD0)
    world.admit("p")
    world.watch = lambda: None  # type: ignore[method-assign]  # no more events
    world.server.change("p", **{names.PLACEMENT: '{"node":"n1","cards":{"containers-0":["GPU-1"]}}'})
    await world.start("p")
    assert world.cards("p") == {"GPU-1"}


async def test_identical_pods_get_their_own_cards_in_any_order(world: World) -> None:
    cards = {f"p{number}": f"GPU-{number % 2}" for number in range(6)}
    for name, card in cards.items():
        world.bind(name, SHARE, {"containers-0": [card]})
    for name in reversed(cards):
        world.admit(name)
    await asyncio.gather(*(world.start(name) for name in sorted(cards, key=lambda name: cards[name])))
    assert {name: world.cards(name) for name in cards} == {name: {card} for name, card in cards.items()}


async def test_pods_with_equal_cores_and_different_memory_get_their_own_requests(world: World) -> None:
    units = {"little": 4, "much": 40}
    for card, (name, memory) in enumerate(units.items()):
        world.bind(name, pod().asks(core=30, memory=memory), {"containers-0": [f"GPU-{card}"]})
    for name in ("much", "little"):
        world.admit(name)
    await asyncio.gather(*(world.start(name) for name in units))
    for name, memory in units.items():
        assert {limits["cards"][0]["memory_mib"] for limits in world.limits(name)} == {256 * memory}


async def test_an_init_container_that_kubelet_does_not_list_gets_its_recorded_card(world: World) -> None:
    asks = pod().init(core=60, memory=40).asks(core=30, memory=20)
    world.bind("p", asks, {"initContainers-0": ["GPU-0"], "containers-0": ["GPU-1"]})
    world.admit("p")
    await world.start("p", "initContainers-0")
    assert world.cards("p", "initContainers-0") == {"GPU-0"}
    await world.start("p")
    assert world.cards("p") == {"GPU-1"}


async def test_a_pod_with_a_card_only_in_an_init_container_is_found_by_the_checkpoint(world: World) -> None:
    for name, card in (("a", "GPU-0"), ("b", "GPU-1")):
        world.bind(name, pod().init(gpu=1).asks(), {"initContainers-0": [card]})
        world.admit(name)
    world.has_checkpoint = False
    with pytest.raises(RefusedError, match=r"kubelet does not report which pod holds 1 of nvidia.com/gpu \(hc-0\)"):
        await world.start("a", "initContainers-0")
    world.has_checkpoint = True
    for name, card in (("b", "GPU-1"), ("a", "GPU-0")):
        await world.start(name, "initContainers-0")
        assert world.cards(name, "initContainers-0") == {card}


async def test_pods_that_share_some_ids_get_their_own_cards(world: World) -> None:
    world.bind("a", SHARE, CARD1)
    world.admit("a")
    world.manager.lose_track_of("uid-a")
    world.bind("b", pod().asks(core=45, memory=35), CARD0)
    world.admit("b")
    for name, card in (("a", "GPU-1"), ("b", "GPU-0"), ("a", "GPU-1")):
        await world.start(name)
        assert world.cards(name) == {card}


async def test_an_unlisted_init_container_is_not_mistaken_for_a_pod_with_some_of_its_ids(world: World) -> None:
    world.bind("a", pod().init(core=30, memory=20).asks(), {"initContainers-0": ["GPU-1"]})
    world.admit("a")
    world.manager.lose_track_of("uid-a")
    world.bind("b", pod().asks(core=45, memory=35), CARD0)
    world.admit("b")
    await world.start("a", "initContainers-0")
    assert world.cards("a", "initContainers-0") == {"GPU-1"}


async def test_pods_with_exactly_the_same_ids_do_not_start_until_one_is_deleted(world: World) -> None:
    world.bind("a", SHARE, CARD1)
    world.admit("a")
    world.manager.lose_track_of("uid-a")
    world.bind("b", SHARE, CARD0)
    world.admit("b")
    for name in "ab":
        with pytest.raises(RefusedError, match=r"to both team/a and team/b; delete the one that does not run yet"):
            await world.start(name)
    world.delete("a")
    await world.start("b")
    assert world.cards("b") == {"GPU-0"}


async def test_a_restart_of_a_container_changes_nothing(world: World) -> None:
    await world.run("p", SHARE, CARD1)
    before = world.edits("p")
    world.restart()
    await world.start("p")
    assert world.edits("p") == before


async def test_pods_do_not_wait_for_each_others_calls(world: World) -> None:
    for name in "ab":
        world.bind(name, SHARE, CARD0)
        world.admit(name)
    world.server.faults = ["held"]
    slow = asyncio.create_task(world.start("a"))
    await world.server.somebody_is_held()
    await world.start("b")
    assert not slow.done()
    world.server.release.set()
    await slow
    assert world.cards("a") == world.cards("b") == {"GPU-0"}


# --- what is not to start ---------------------------------------------------------------------------------------------


ODD: Final[dict[str, tuple[dict[str, str], dict[str, list[str]] | None, str]]] = {
    "another node": ({"on": "n2"}, CARD0, 'pod team/p is bound to node "n2"; this is node n1'),
    "over": ({"phase": "Failed"}, CARD0, "pod team/p has ended"),
    "a card of another node": ({}, {"containers-0": ["GPU-9"]}, 'does not have: "GPU-9"'),
    "a record of no card": ({}, {"containers-0": []}, "cannot be understood"),
}


@pytest.mark.parametrize(("words", "cards", "expected_message"), ODD.values(), ids=ODD)
async def test_an_invalid_pod_does_not_start(
    words: dict[str, str], cards: dict[str, list[str]] | None, expected_message: str, world: World
) -> None:
    with pytest.raises(RefusedError, match=expected_message):
        await world.run("p", SHARE, cards, **words)
    assert not list(world.slots) and world.patches() == 0


async def test_a_deleted_pod_does_not_start(world: World) -> None:
    world.bind("p", SHARE, CARD0)
    world.admit("p")
    del world.server.pods["p"]
    with pytest.raises(RefusedError, match="pod team/p is gone"):
        await world.allocator.prestart(*next(world.ids("p", "containers-0")))


async def test_a_pod_does_not_start_on_an_unhealthy_card_until_it_recovers(world: World) -> None:
    well = world.node
    world.node = replace(well, cards=(replace(well.cards[0], why_not="Xid 79"), well.cards[1]))
    with pytest.raises(RefusedError, match=r"pod team/p: card 0 \(GPU-0\) is out of order: Xid 79; kubelet tries"):
        await world.run("p", SHARE, CARD0)
    world.node = well
    await world.start("p")
    assert world.cards("p") == {"GPU-0"}


async def test_errors_of_kubelet_and_the_disk_reach_the_pod(world: World) -> None:
    world.bind("p", SHARE, CARD0)
    world.admit("p")
    state = world.folder / "state" / "slots"
    state.rmdir()
    state.touch()
    with pytest.raises(RefusedError, match=r"the grant cannot be written: .*check the node's disk"):
        await world.start("p")

    async def failing() -> Any:
        raise KubeletError("kubelet does not answer")

    world.allocator.context = replace(world.allocator.context, listed_devices=failing)
    with pytest.raises(RefusedError, match="kubelet does not answer"):
        await world.start("p")


# --- neighbours -------------------------------------------------------------------------------------------------------


async def test_a_pod_deleted_by_force_keeps_its_share_until_its_processes_end(world: World) -> None:
    await world.run("old", LARGE, CARD0)
    world.delete("old", by_force=True)
    with pytest.raises(RefusedError, match="used by containers of team/old, which still run and leave 20 % of"):
        await world.run("new", LARGE, CARD0)
    world.restart()
    with pytest.raises(RefusedError, match="used by containers of team/old"):
        await world.start("new")
    await world.run("small", pod().asks(core=10, memory=1), CARD0)
    world.living.discard("uid-old")
    await world.start("new")
    assert world.cards("new") == {"GPU-0"}


STATIC: Final = LARGE.annotated({names.MIRROR_POD: "5f0c" * 8})
"""As the API server has it: with a uid that kubelet and the kernel do not know."""


async def test_a_static_pod_keeps_its_share_until_its_processes_end(world: World) -> None:
    await world.run("static", STATIC, CARD0)
    assert world.living == {"5f0c" * 8} and await world.allocator.sweep() == ()
    world.delete("static", by_force=True)
    with pytest.raises(RefusedError, match="used by containers of team/static, which still run"):
        await world.run("new", LARGE, CARD0)
    world.living.clear()
    await world.start("new")
    assert world.cards("new") == {"GPU-0"}


async def test_a_static_pod_restarts_after_its_mirror_pod_was_deleted(world: World) -> None:
    await world.run("static", STATIC, CARD0)
    world.bind("static", STATIC, CARD0, uid="another")
    await world.start("static")
    assert world.cards("static") == {"GPU-0"} and len(world.slots.uids()) == 1


async def test_a_pod_on_the_card_counts_even_when_its_device_ids_are_reused(world: World) -> None:
    await world.run("old", WHOLE, CARD0)
    world.delete("old", by_force=True)
    world.bind("new", WHOLE, CARD0)
    world.admit("new")
    assert world.given["new"] == world.given["old"]
    world.restart()
    with pytest.raises(RefusedError, match="used by containers of team/old, which still run and leave too little"):
        await world.start("new")
    world.living.discard("uid-old")
    await world.start("new")
    assert world.cards("new") == {"GPU-0"} and world.slots.other_pods("uid-new") == []


async def test_a_pod_that_has_ended_frees_its_card_at_once(world: World) -> None:
    await world.run("old", LARGE, CARD0)
    world.delete("old")
    await world.run("new", LARGE, CARD0)
    assert [slot.pod for slot in world.slots] == ["new", "new"]


async def test_a_sweep_frees_only_the_slots_of_ended_containers(world: World) -> None:
    await world.run("old", SHARE, CARD0)
    await world.run("new", SHARE, CARD0)
    assert await world.allocator.sweep() == ()
    world.delete("old")
    assert {slot.pod for slot in await world.allocator.sweep()} == {"old"}
    assert world.cards("new") == {"GPU-0"}


async def test_a_sweep_looks_only_for_processes_of_pods_that_kubelet_no_longer_lists(world: World) -> None:
    for name in ("old", "new"):
        await world.run(name, SHARE, CARD0)
    await world.allocator.sweep()
    assert world.looked_for == set()
    world.delete("old")
    await world.allocator.sweep()
    assert world.looked_for == {"uid-old"}


# --- names are used again ---------------------------------------------------------------------------------------------


async def test_a_pod_of_the_same_name_gets_its_own_card(world: World) -> None:
    await world.run("web-0", SHARE, CARD0, uid="first")
    world.delete("web-0")
    await world.run("web-0", SHARE, CARD1, uid="second")
    assert world.cards("web-0") == {"GPU-1"}
    assert {slot.uid for slot in await world.allocator.sweep()} == {"first"}


async def test_without_the_api_a_pod_of_the_same_name_does_not_get_its_predecessors_card(world: World) -> None:
    await world.run("web-0", SHARE, CARD0, uid="first")
    world.delete("web-0")
    world.bind("web-0", SHARE, CARD1, uid="second")
    world.admit("web-0")
    world.server.faults = ["refused"]
    with pytest.raises(RefusedError, match="its cards cannot be read from the API server: 500 etcd: no leader"):
        await world.start("web-0")


async def test_a_container_of_the_predecessor_does_not_get_its_successors_card(world: World) -> None:
    """Kubelet restarts it while the API server has another pod of that name already."""
    await world.run("web-0", SHARE, CARD0, uid="first")
    del world.server.pods["web-0"]
    world.bind("web-0", SHARE, CARD1, uid="second")
    with pytest.raises(RefusedError, match="these device ids belong to an earlier pod team/web-0; kubelet tries again"):
        await world.start("web-0")
    assert world.cards("web-0") == {"GPU-0"}


# --- without the API --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["refused", "unheard"])
async def test_without_the_api_a_container_restarts_with_its_last_grant(fault: Fault, world: World) -> None:
    await world.run("p", SHARE, CARD1)
    world.restart()
    world.server.faults = [fault] * 8
    await world.start("p")
    assert world.cards("p") == {"GPU-1"}
    world.node = replace(world.node, cards=tuple(replace(card, why_not="Xid 79") for card in world.node.cards))
    with pytest.raises(RefusedError, match="is out of order"):
        await world.start("p")


async def test_without_the_api_a_container_restarts_long_after_its_description_was_hidden(world: World) -> None:
    await world.run("p", SHARE, CARD1)
    before = world.edits("p")
    world.clock += 60 * 10**9
    assert await world.allocator.sweep() == ()
    assert not list((world.folder / "cdi").glob("*.json"))
    world.server.faults = ["refused"] * 2
    await world.start("p")
    assert world.edits("p") == before


async def test_without_the_api_a_container_that_never_started_waits(world: World) -> None:
    world.bind("p", SHARE, CARD1)
    world.admit("p")
    world.server.faults = ["refused"]
    with pytest.raises(
        RefusedError, match=r"its cards cannot be read from the API server: 500 .*; kubelet tries again"
    ):
        await world.start("p")
    await world.start("p")
    assert world.cards("p") == {"GPU-1"}


# --- without a record -------------------------------------------------------------------------------------------------


def record(world: World, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(world.server.annotations(name)[names.PLACEMENT])["cards"]
    return found


async def test_a_pod_that_another_scheduler_bound_gets_cards_and_a_record(world: World) -> None:
    await world.run("p", SHARE)
    assert world.cards("p") == set(record(world, "p")["containers-0"])
    assert json.loads(world.server.annotations("p")[names.PLACEMENT])["by"] == RecordWriter.AGENT
    assert world.server.annotations("p")[f"{names.TENCENT}{names.PREDICATE_CARDS_SUFFIX}0"] == "0"
    assert world.patches() == 1


@pytest.mark.parametrize("watched", [True, False], ids=["as the watch sees it", "before the watch sees anything"])
async def test_pods_without_a_record_that_start_together_get_different_cards(world: World, *, watched: bool) -> None:
    world.watched = watched
    for name in "ab":
        world.bind(name, LARGE)
        world.admit(name)
    await asyncio.gather(*(world.start(name) for name in "ab"))
    assert world.cards("a") | world.cards("b") == {"GPU-0", "GPU-1"}
    assert all(world.cards(name) == set(record(world, name)["containers-0"]) for name in "ab")


async def test_a_pod_without_a_record_that_does_not_fit_gets_no_record(world: World) -> None:
    for number in range(2):
        await world.run(f"p{number}", LARGE, {"containers-0": [f"GPU-{number}"]})
    with pytest.raises(RefusedError, match="no room for it; delete it to have it placed again, or kubelet tries again"):
        await world.run("p", LARGE)
    assert world.patches() == 0


async def test_of_pods_bound_by_counts_those_that_fit_start_and_one_is_refused(world: World) -> None:
    for number in range(2):
        await world.run(f"p{number}", pod().asks(core=50, memory=20), {"containers-0": [f"GPU-{number}"]})
    for name in "abc":
        world.bind(name, SHARE)
        world.admit(name)
    with pytest.raises(RefusedError) as refused:
        await world.start("c")
    assert str(refused.value) == NO_ROOM
    found = await asyncio.gather(*(world.start(name) for name in "cba"), return_exceptions=True)
    assert [isinstance(each, RefusedError) for each in found] == [True, False, False]


NO_ROOM: Final = (
    "pod team/c was bound to node n1 without a record of its cards, and the node's cards have no room for it "
    "beside the older pods that start first (team/a, team/b); delete it to have it placed again, or kubelet tries "
    "again"
)


async def test_a_pod_that_runs_without_a_record_counts_before_older_ones_that_wait(world: World) -> None:
    world.node = replace(world.node, cards=world.node.cards[:1])
    world.bind("p", LARGE)
    world.bind("runs", LARGE, uid="uid-z", phase="Running")
    world.admit("p")
    with pytest.raises(RefusedError, match="no room for it; delete it"):
        await world.start("p")


async def test_a_pod_that_changed_meanwhile_is_read_again(world: World) -> None:
    world.bind("p", WHOLE)
    world.admit("p")
    world.server.faults = [None, "held"]
    starting = asyncio.create_task(world.start("p"))
    await world.server.somebody_is_held()
    world.server.change("p", **{names.PLACEMENT: '{"node":"n1","cards":{"containers-0":["GPU-1"]}}'})
    world.server.release.set()
    await starting
    assert world.cards("p") == {"GPU-1"} and record(world, "p") == CARD1


@pytest.mark.parametrize(("faults", "patches"), [([None, "unanswered"], 1), ([None, "unheard"], 2)])
async def test_a_container_does_not_start_if_its_record_must_not_be_written(
    faults: Iterable[Fault | None], patches: int, world: World
) -> None:
    world.server.faults = list(faults)
    with pytest.raises(RefusedError, match=r"its cards cannot be recorded: no answer to PATCH .*; kubelet tries again"):
        await world.run("p", WHOLE)
    assert not list(world.slots)
    await world.start("p")
    assert world.cards("p") == set(record(world, "p")["containers-0"])
    assert world.patches() == patches


# --- without CDI ------------------------------------------------------------------------------------------------------


async def test_without_cdi_links_lead_to_the_cards(world: World) -> None:
    world.restart(SymlinkInjector(world.folder, world.slots.folder, lambda: [0, 1]))
    await world.run("p", WHOLE, CARD1)
    folder = world.slots.folder(slot_name(*next(world.ids("p", "containers-0"))))
    found = {path.name: str(path.readlink()) for path in folder.iterdir() if path.is_symlink()}
    assert found == {"nvidia0": "/dev/null", "nvidia1": str(world.folder / "nvidia1")}
    assert json.loads((folder / "limits.json").read_text())["cards"][0]["uuid"] == "GPU-1"
