"""Slots on disk: complete or absent, read back after any crash, and removed with their containers."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deviceplugin.allocate.assignment import RunningPod
from deviceplugin.allocate.slots import Slot, Slots, slot_name
from deviceplugin.isolation.share_files import ShareFiles
from deviceplugin.kubelet.messages import ListedDevices
from halfcard import names
from halfcard.placing.card_usage import CardMode, CardUse

USE: Final = {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}
IDS: Final = ("hc-0", "hc-1")
NAME: Final = slot_name(names.VCUDA_CORE, IDS)


def slot(pod: str = "a", uid: str = "u1", ids: Iterable[str] = IDS, written_ns: int = 1) -> Slot:
    return Slot("team", pod, uid, ("c",), names.VCUDA_CORE, tuple(ids), USE, written_ns)


def held(pod: str = "a", ids: Iterable[str] = IDS) -> ListedDevices:
    return ListedDevices("team", pod, "c", names.VCUDA_CORE, frozenset(ids))


def loaded(folder: Path) -> Slots:
    found = Slots(folder / "cdi", folder / "state", ShareFiles(folder / "shares"))
    assert found.load() == ()
    return found


def put(slots: Slots, *given: Slot) -> None:
    for each in given:
        slots.write(each, {"env": ["A=1"]}, "0.6.0", b"{}\n")


def shown(folder: Path, name: str = NAME) -> Path:
    return folder / "cdi" / f"halfcard.dev-slot_{name}.json"


def descriptions(folder: Path) -> list[str]:
    """The descriptions that a runtime would read."""
    return sorted(path.name for path in (folder / "cdi").iterdir() if path.suffix in (".json", ".yaml"))


def test_a_slot_name_depends_on_resource_and_ids_but_not_their_order() -> None:
    assert slot_name("a/b", ["hc-1", "hc-0"]) == slot_name("a/b", ["hc-0", "hc-1"])
    assert len({slot_name("a/b", ["hc-0"]), slot_name("a/b", ["hc-1"]), slot_name("a/c", ["hc-0"])}) == 3


def test_grants_are_known_after_a_restart(tmp_path: Path) -> None:
    put(loaded(tmp_path), slot())
    again = loaded(tmp_path)
    assert list(again) == [slot()] and again.get(NAME) == slot()
    assert again.other_pods("another") == [RunningPod("team/a", USE)] and again.other_pods("u1") == []
    assert descriptions(tmp_path) == [f"halfcard.dev-slot_{NAME}.json"]
    assert again.limits_file(NAME).read_bytes() == b"{}\n"
    assert again.limits_file(NAME).stat().st_mode & 0o777 == 0o644


def test_reused_ids_remove_the_old_description_but_its_cards_stay_used(tmp_path: Path) -> None:
    """A pod that was deleted by force may run for a while: not even a restart of the agent frees its cards."""
    slots = loaded(tmp_path)
    put(slots, slot())
    slots.retire(names.VCUDA_CORE, IDS)
    assert descriptions(tmp_path) == [] and slots.get(NAME) is None
    for each in (slots, loaded(tmp_path)):
        assert each.other_pods("u2") == [RunningPod("team/a", USE)]
        assert each.remove_ended(9, [held("b")], {"u1"}) == () and each.other_pods("u2")
    assert slots.remove_ended(9, [held("b")], ()) == (slot(),)
    assert slots.other_pods("u2") == [] and loaded(tmp_path).other_pods("u2") == []


def test_an_unknown_description_is_removed(tmp_path: Path) -> None:
    loaded(tmp_path)
    shown(tmp_path).write_text("{}")
    loaded(tmp_path)
    assert descriptions(tmp_path) == []


def test_a_record_is_shown_while_its_container_is_created_and_hidden_after_that(tmp_path: Path) -> None:
    slots = loaded(tmp_path)
    put(slots, slot(written_ns=5))
    content = shown(tmp_path).read_bytes()
    for each in (slots, loaded(tmp_path)):
        each.hide(5)
        assert descriptions(tmp_path) == [shown(tmp_path).name]
    slots.hide(6)
    assert descriptions(tmp_path) == []
    again = loaded(tmp_path)
    assert again.get(NAME) == slot(written_ns=5)
    for _ in range(2):
        again.show(NAME, 7)
        assert shown(tmp_path).read_bytes() == content
    assert len(list((tmp_path / "cdi" / ".halfcard.dev").iterdir())) == 1


def test_all_records_are_visible_after_the_agent_ends(tmp_path: Path) -> None:
    slots = loaded(tmp_path)
    put(slots, slot(written_ns=5))
    slots.hide(6)
    slots.show_all(7)
    assert descriptions(tmp_path) == [shown(tmp_path).name]
    loaded(tmp_path).hide(7)
    assert descriptions(tmp_path) == []


MOVED_AWAY, MOVED_HERE = 0x40, 0x80  # of inotify(7)


@contextmanager
def moves_within(folder: Path) -> Iterator[list[int]]:
    """Returns the kernel's events about the folder, as a runtime that watches it gets them."""
    library = ctypes.CDLL(None, use_errno=True)
    watch = library.inotify_init1(os.O_NONBLOCK)
    library.inotify_add_watch(watch, str(folder).encode(), MOVED_AWAY | MOVED_HERE)
    seen: list[int] = []
    try:
        yield seen
        received = os.read(watch, 4096)
        while received:
            _, mask, _, length = struct.unpack_from("iIII", received)
            seen.append(mask)
            received = received[16 + length :]
    finally:
        os.close(watch)


def test_a_runtime_that_watches_the_folder_notices_a_new_description(tmp_path: Path) -> None:
    """A file that was moved from another folder is ignored by containerd 2.0 to 2.3."""
    slots = loaded(tmp_path)
    with moves_within(tmp_path / "cdi") as seen:
        put(slots, slot())
    assert seen == [MOVED_AWAY, MOVED_HERE]


SPOILED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "of another slot": lambda content: content.replace(NAME.encode(), b"0" * len(NAME)),
    "no record": lambda content: content.replace(b"holder", b"nobody"),
    "bytes": lambda _: b"\xff\x00",
    "deep": lambda _: b"[" * 200_000,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_an_unreadable_record_is_removed_and_reported(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    put(loaded(tmp_path), slot(), slot("b", "u2", ["hc-7"]))
    record = tmp_path / "cdi" / ".halfcard.dev" / f"{NAME}.u1"
    record.write_bytes(spoil(record.read_bytes()))
    slots = Slots(tmp_path / "cdi", tmp_path / "state", ShareFiles(tmp_path / "shares"))
    (received,) = slots.load()
    assert str(record) in received and not record.exists()
    assert descriptions(tmp_path) == [shown(tmp_path, slot_name(names.VCUDA_CORE, ["hc-7"])).name]
    assert [each.pod for each in slots] == ["b"]
    assert not slots.folder(NAME).exists()


def test_a_write_that_a_crash_interrupted_has_no_effect(tmp_path: Path) -> None:
    slots = loaded(tmp_path)
    put(slots, slot())
    content = shown(tmp_path).read_bytes()
    (tmp_path / "cdi" / ".halfcard.dev" / "draft.new").write_bytes(content)
    shown(tmp_path).with_suffix(".new").write_bytes(content)
    (slots.folder(NAME) / "limits.json.new").write_bytes(b"{")
    unfinished = slots.folder(slot_name(names.VCUDA_CORE, ["hc-9"]))
    unfinished.mkdir()
    again = loaded(tmp_path)
    assert list(again) == [slot()] and len(again.uids()) == 1
    assert not unfinished.exists()
    assert descriptions(tmp_path) == [shown(tmp_path).name]
    assert [path.name for path in (tmp_path / "cdi" / ".halfcard.dev").iterdir()] == [f"{NAME}.u1"]


def test_other_programs_descriptions_are_not_changed(tmp_path: Path) -> None:
    slots = loaded(tmp_path)
    (tmp_path / "cdi" / "nvidia.yaml").write_text("kind: nvidia.com/gpu")
    slots.remove_ended(9, (), ())
    assert loaded(tmp_path).get(NAME) is None and descriptions(tmp_path) == ["nvidia.yaml"]


ENDED: Final[dict[str, tuple[list[ListedDevices], Collection[str], int, bool]]] = {
    "kubelet lists it": ([held()], (), 9, False),
    "a process lives": ([], {"u1"}, 9, False),
    "neither": ([], (), 9, True),
    "the ids are another pod's": ([held("b")], (), 9, True),
    "others of its ids are left": ([held("a", ["hc-1"])], (), 9, False),
    "kubelet was asked before": ([], (), 1, False),
}


@pytest.mark.parametrize(("listed", "living", "before_ns", "is_ended"), ENDED.values(), ids=ENDED)
def test_a_slot_ends_when_kubelet_does_not_list_it_and_no_process_runs(
    tmp_path: Path,
    listed: list[ListedDevices],
    living: Collection[str],
    before_ns: int,
    is_ended: bool,  # noqa: FBT001
) -> None:
    slots = loaded(tmp_path)
    put(slots, slot())
    assert bool(slots.remove_ended(before_ns, listed, living)) is is_ended
    assert bool(descriptions(tmp_path)) is not is_ended
    assert slots.folder(NAME).exists() is not is_ended


def test_of_two_pods_with_one_name_kubelet_means_the_later(tmp_path: Path) -> None:
    slots = loaded(tmp_path)
    earlier, later = slot(uid="u1", written_ns=1), slot(uid="u2", ids=["hc-1", "hc-2"], written_ns=2)
    put(slots, earlier, later)
    assert slots.remove_ended(9, [held(ids=["hc-1", "hc-2"])], ()) == (earlier,)
    assert list(slots) == [later]


def test_a_pending_pod_does_not_keep_the_slot_of_a_running_pod_with_its_name(tmp_path: Path) -> None:
    """A pod that was deleted by force frees its ids at once: a new pod of the same name may get some of them."""
    slots = loaded(tmp_path)
    put(slots, slot(ids=["hc-1", "hc-2"]))
    slots.retire(names.VCUDA_CORE, ["hc-2", "hc-3"])
    waiting = held(ids=["hc-2", "hc-3"])
    assert slots.unlisted_pods([waiting]) == {"u1"}
    assert slots.remove_ended(9, [waiting], {"u1"}) == () and slots.other_pods("u2") == [RunningPod("team/a", USE)]
    assert slots.remove_ended(9, [waiting], ()) and slots.other_pods("u2") == []


class Node(RuleBasedStateMachine):
    """Pods are created, restarted, ended and deleted by force; the agent is killed, restarted, and sweeps at times."""

    def __init__(self) -> None:
        super().__init__()
        self._scratch = TemporaryDirectory()
        self.folder = Path(self._scratch.name)
        self.slots = loaded(self.folder)
        self.clock = 0
        self.pods: dict[str, Pod] = {}

    def teardown(self) -> None:
        self._scratch.cleanup()

    @rule(
        name=st.sampled_from("ab"),
        ids=st.frozensets(st.sampled_from(["hc-0", "hc-1", "hc-2"]), min_size=1),
        starts=st.booleans(),
    )
    def come(self, name: str, ids: frozenset[str], starts: bool) -> None:  # noqa: FBT001
        """When the pod does not start, the agent has refused it, because the pod on its card still runs."""
        if any(pod.is_listed and (pod.name == name or pod.ids & ids) for pod in self.pods.values()):
            return  # kubelet gives ids to one pod at a time
        self.clock += 1
        uid = f"u{self.clock}"
        self.slots.retire(names.VCUDA_CORE, ids)
        if starts:
            put(self.slots, slot(name, uid, sorted(ids), self.clock))
            assert shown(self.folder, slot_name(names.VCUDA_CORE, ids)).exists()
        self.pods[uid] = Pod(name, ids, has_slot=starts, lives=starts)

    @rule()
    def containers_have_been_created(self) -> None:
        self.slots.hide(self.clock)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), what=st.sampled_from(["deleted by force", "ended"]))
    def end(self, data: st.DataObject, what: str) -> None:
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        pod.is_listed, pod.lives = False, pod.lives and what != "ended"

    @rule()
    def die_and_come_back(self) -> None:
        self.slots = loaded(self.folder)

    @rule()
    def sweep(self) -> None:
        self.clock += 1
        listed = [held(pod.name, pod.ids) for pod in self.pods.values() if pod.is_listed]
        self.slots.remove_ended(self.clock, listed, {uid for uid, pod in self.pods.items() if pod.lives})
        self.pods = {uid: pod for uid, pod in self.pods.items() if pod.lives or pod.is_listed}
        with_slots = {uid: pod for uid, pod in self.pods.items() if pod.has_slot}
        assert self.slots.uids() == set(with_slots)
        assert len(list((self.folder / "state" / "slots").iterdir())) == len({pod.ids for pod in with_slots.values()})

    @invariant()
    def nobody_who_may_run_is_forgotten(self) -> None:
        running = {uid for uid, pod in self.pods.items() if pod.has_slot and (pod.lives or pod.is_listed)}
        assert running <= self.slots.uids()

    @invariant()
    def a_runtime_finds_nothing_but_what_was_given_last(self) -> None:
        known = {f"halfcard.dev-slot_{each.name}.json" for each in self.slots}
        assert set(descriptions(self.folder)) <= known


@dataclass
class Pod:
    name: str
    ids: frozenset[str]
    has_slot: bool
    lives: bool
    is_listed: bool = True


TestNode = Node.TestCase
TestNode.settings = settings(max_examples=60, stateful_step_count=25)


def test_a_record_is_read_back_as_it_was_written() -> None:
    assert msgspec.json.decode(msgspec.json.encode(slot()), type=Slot) == slot()


@pytest.mark.parametrize(("containers", "only"), [(("a",), "a"), (("a", "b"), "")])
def test_a_slot_names_its_container_where_it_is_the_only_possible_one(containers: tuple[str, ...], only: str) -> None:
    slot = Slot("team", "p", "uid", containers, names.VCUDA_CORE, ("0",), USE, 1)
    assert slot.only_container == only
