"""The control file of a held container says what its processes use beyond the account, as the driver measures it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import pytest

from deviceplugin.gpus.interface import GpusError, Load, Process
from deviceplugin.isolation.share_files import ShareFiles
from deviceplugin.usage.cgroup_paths import Owner
from deviceplugin.usage.held_accounts import HeldSlot
from deviceplugin.usage.process_names import ProcessNames
from deviceplugin.usage.share_meter import ShareMeter
from halfcard.isolation.shared_files import (
    MOST_PROCESSES,
    CardControl,
    Excess,
    excess_of_control,
    measured_at_of_control,
    process_name,
)

UUIDS: Final = [f"GPU-{number * 8}-{number * 4}-{number * 4}-{number * 4}-{number * 12}" for number in ("1", "2")]
CARDS: Final = [CardControl(bytes.fromhex(number * 32), 1 << 30) for number in ("1", "2")]
SLOT: Final = HeldSlot("slot", "uid-a", "main")
PID: Final = 4711
OWNER: Final = process_name(7, 55) << 16 | 9
MIB: Final = 1 << 20


class Node:
    """One held container with two cards, a process on them, and the files of the kernel that name it."""

    def __init__(self, folder: Path) -> None:
        self.files = ShareFiles(folder / "shares")
        self.files.write(SLOT.name, CARDS)
        self.loads: dict[str, Load] = {}
        self.now_ns = 10**12
        self.pods = {PID: "uid-a"}
        process = folder / "proc" / str(PID)
        process.mkdir(parents=True)
        (process / "status").write_text(f"NSpid:\t{PID}\t7\n")
        (process / "stat").write_text(f"{PID} (a) S 1" + " 0" * 17 + " 55 0 0")
        self.meter = ShareMeter(self.files, self.load, self.owners, ProcessNames(folder / "proc"), lambda: self.now_ns)

    def load(self, uuid: str) -> Load:
        if uuid not in self.loads:
            raise GpusError("the card is lost")
        return self.loads[uuid]

    def owners(self, pids: object) -> dict[int, Owner]:
        return {pid: Owner(pod, "c") for pid, pod in self.pods.items()}

    def uses(self, at: int, mib: int, cores_pct: int = 5) -> None:
        self.loads[UUIDS[at]] = Load(mib, cores_pct, (Process(PID, mib, cores_pct),))

    def says(self, at: int, mib: int, owner: int = OWNER) -> None:
        """Writes the first row of a card, as the library does."""
        start = 64 + at * (64 + MOST_PROCESSES * 64)
        with (self.files.folder(SLOT.name) / "account").open("r+b") as account:
            account.seek(start + 8)
            account.write(struct.pack("=Q", 1))
            account.seek(start + 64)
            account.write(struct.pack("=2Q", owner, mib * MIB))

    def claims(self, at: int, gpu_ms: int, throttled_ms: int = 0) -> None:
        """Changes the GPU time in the first row of a card."""
        first = 64 + at * (64 + MOST_PROCESSES * 64) + 64
        with (self.files.folder(SLOT.name) / "account").open("r+b") as account:
            account.seek(first + 32)
            account.write(struct.pack("=2Q", gpu_ms * 10**6, throttled_ms * 10**6))

    def has_contexts(self, at: int, count: int, context_mib: int) -> None:
        """Changes the contexts in the first row of a card."""
        first = 64 + at * (64 + MOST_PROCESSES * 64) + 64
        with (self.files.folder(SLOT.name) / "account").open("r+b") as account:
            account.seek(first + 48)
            account.write(struct.pack("=2Q", count, context_mib * MIB))

    def measure(self) -> None:
        """Measures after a second."""
        self.now_ns += 10**9
        self.meter.measure([SLOT])

    def excess(self, at: int) -> Excess:
        """The first row's excess in the control file."""
        offset, _ = excess_of_control(at, [])
        control = (self.files.folder(SLOT.name) / "control").read_bytes()
        return Excess(*struct.unpack_from("=2Q", control, offset))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_what_a_process_uses_beyond_its_row_is_written_for_its_card(node: Node) -> None:
    node.says(1, 100)
    node.uses(1, 450)
    node.meter.measure([SLOT])
    assert (node.excess(0), node.excess(1)) == (Excess(0, 0), Excess(OWNER, 350 * MIB))


def test_what_the_account_says_of_a_measured_process_is_known_afterwards(node: Node) -> None:
    node.says(0, 100)
    node.says(1, 200, owner=OWNER + (1 << 16))  # a process that is not on the card any more
    for at in (0, 1):
        node.uses(at, 450)
    node.meter.measure([SLOT])
    assert {key: said.memory_mib for key, said in node.meter.accounts.items()} == {
        ("uid-a", "main", UUIDS[0]): 100,
        ("uid-a", "main", UUIDS[1]): 0,
    }


def test_a_slot_of_one_of_several_containers_is_measured_and_says_nothing_of_any(node: Node) -> None:
    node.says(0, 100)
    node.uses(0, 450)
    node.meter.measure([SLOT._replace(container="")])
    assert node.excess(0) == Excess(OWNER, 350 * MIB) and node.meter.accounts == {}


def test_what_was_said_is_forgotten_when_no_container_is_held(node: Node) -> None:
    node.says(0, 100)
    node.uses(0, 450)
    node.meter.measure([SLOT])
    node.meter.measure([])
    assert node.meter.accounts == {}


def test_limits_and_mappings_of_the_file_stay(node: Node) -> None:
    control = node.files.folder(SLOT.name) / "control"
    inode, limits = control.stat().st_ino, control.read_bytes()[:64]
    node.says(0, 100)
    node.uses(0, 450)
    node.meter.measure([SLOT])
    assert (control.stat().st_ino, control.read_bytes()[:16]) == (inode, limits[:16])
    assert [each[:4] for each in node.files.controls(SLOT.name)] == [each[:4] for each in CARDS]


def test_an_excess_that_is_over_is_removed(node: Node) -> None:
    node.says(0, 100)
    for mib, expected in ((450, Excess(OWNER, 350 * MIB)), (100, Excess(0, 0))):
        node.uses(0, mib)
        node.meter.measure([SLOT])
        assert node.excess(0) == expected


def test_a_process_of_another_pod_with_the_same_name_counts_for_that_one(node: Node) -> None:
    node.says(0, 100)
    node.uses(0, 450)
    node.pods[PID] = "uid-b"
    node.meter.measure([SLOT])
    assert node.excess(0) == Excess(0, 0)


def test_a_card_that_the_driver_does_not_read_changes_nothing(node: Node) -> None:
    node.says(0, 100)
    node.uses(0, 450)
    node.meter.measure([SLOT])
    node.loads.clear()
    node.meter.measure([SLOT])
    assert node.excess(0) == Excess(OWNER, 350 * MIB)


@pytest.mark.parametrize("content", [b"", b"x" * 10, bytes(300_000)], ids=["cut", "garbage", "zeros"])
def test_an_account_that_its_container_spoiled_stops_nothing(node: Node, content: bytes) -> None:
    node.files.write("other", CARDS)
    (node.files.folder("other") / "account").write_bytes(content)
    node.says(0, 100)
    node.uses(0, 450)
    node.meter.measure([HeldSlot("other", "uid-b", "main"), HeldSlot("gone", "uid-c", "main"), SLOT])
    assert node.excess(0) == Excess(OWNER, 350 * MIB)


def test_what_a_context_needs_is_taken_for_the_next_one_of_any_container_on_the_card(node: Node) -> None:
    node.files.write("other", CARDS)
    node.says(0, 100)
    node.has_contexts(0, 1, context_mib=0)
    node.uses(0, 400)
    node.meter.measure([SLOT, HeldSlot("other", "uid-b", "main")])
    for slot in ("slot", "other"):
        assert [each.context for each in node.files.controls(slot)] == [300 * MIB, 0]
    node.says(0, 0)
    node.has_contexts(0, 0, context_mib=0)
    node.meter.measure([SLOT])
    assert node.files.controls(SLOT.name)[0].context == 300 * MIB  # as last seen


def test_claims_are_corrected_by_what_the_driver_measures_of_their_card(node: Node) -> None:
    for second in range(1, 12):
        node.says(0, 100)
        node.claims(0, gpu_ms=400 * second)
        node.uses(0, 100, cores_pct=20)
        node.measure()
    assert [each.correction for each in node.files.controls(SLOT.name)] == [500, 1000]


def test_a_container_with_a_ceiling_has_spare_cores_until_another_program_needs_them(node: Node) -> None:
    node.files.write(SLOT.name, [card._replace(share=300, ceiling=600) for card in CARDS])
    node.says(0, 100)
    node.uses(0, 100, cores_pct=30)
    node.measure()
    assert [each.spare for each in node.files.controls(SLOT.name)] == [1, 0]  # nothing is known of the other card
    busy = node.loads[UUIDS[0]]
    node.loads[UUIDS[0]] = busy._replace(processes=(*busy.processes, Process(PID + 1, 10, 60)))
    node.measure()
    assert node.files.controls(SLOT.name)[0].spare == 0


def test_the_library_reads_when_the_cores_were_measured(node: Node) -> None:
    node.says(0, 100)
    node.uses(0, 100)
    node.measure()
    offset, written = measured_at_of_control(node.now_ns)
    control = (node.files.folder(SLOT.name) / "control").read_bytes()
    assert control[offset : offset + len(written)] == written
