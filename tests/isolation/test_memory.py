"""A program gets its share of a card's memory and no more, by whichever function it allocates."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import pytest

from halfcard.isolation.shared_files import VERSION, new_account

from .node import CONTEXT_MIB, LIMIT_MIB, MIB, OUT_OF_MEMORY, Container, Driver, Program, share

LEFT_MIB: Final = LIMIT_MIB - CONTEXT_MIB
FLOAT: Final = 0x20


def on_device(device: int, kind: int = 1) -> bytes:
    """CUmemAllocationProp: memory of a card."""
    return struct.pack("=4iQ8x", 1, 0, kind, device, 0)


class Way(NamedTuple):
    """A function that allocates, the arguments that allocate this many MiB, and the function that frees."""

    name: str
    mib: int
    arguments: tuple[int | bytes | None, ...]
    free: str


WAYS: Final = (
    Way("cuMemAlloc_v2", 300, (None, 300 * MIB), "cuMemFree_v2"),
    Way("cuMemAlloc", 300, (None, 300 * MIB), "cuMemFree"),
    Way("cuMemAllocManaged", 300, (None, 300 * MIB, 1), "cuMemFree_v2"),
    Way("cuMemAllocPitch_v2", 300, (None, None, MIB - 100, 300, 4), "cuMemFree_v2"),
    Way("cuMemAllocPitch", 300, (None, None, MIB - 100, 300, 4), "cuMemFree"),
    Way("cuArrayCreate_v2", 400, (None, struct.pack("=QQII", 1024 * 1024, 100, FLOAT, 1)), "cuArrayDestroy"),
    Way("cuArrayCreate_v2", 400, (None, struct.pack("=QQII", 100 * MIB, 0, FLOAT, 1)), "cuArrayDestroy"),
    Way("cuArrayCreate", 400, (None, struct.pack("=IIII", 1024 * 1024, 100, FLOAT, 1)), "cuArrayDestroy"),
    Way("cuArray3DCreate_v2", 400, (None, struct.pack("=QQQIII4x", 1024, 1024, 50, 0x10, 4, 0)), "cuArrayDestroy"),
    Way("cuArray3DCreate", 400, (None, struct.pack("=6I", 1024, 1024, 50, 0x10, 4, 0)), "cuArrayDestroy"),
    Way(
        "cuMipmappedArrayCreate",
        320,
        (None, struct.pack("=QQQIII4x", 8 * MIB, 8, 0, FLOAT, 1, 0), 2),
        "cuMipmappedArrayDestroy",
    ),
    Way("cuMemCreate", 300, (None, 300 * MIB, on_device(0), 0), "cuMemRelease"),
)

each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


@each_way
def test_what_a_function_allocates_is_counted_until_it_is_freed(
    container: Container, program: Program, way: Way
) -> None:
    made = program.get(way.name, *way.arguments)
    assert container.used_mib() == CONTEXT_MIB + way.mib
    assert program.error(way.free, made) == 0
    assert container.used_mib() == CONTEXT_MIB


@each_way
def test_what_exceeds_the_share_is_out_of_memory_and_changes_nothing(
    container: Container, program: Program, way: Way
) -> None:
    program.allocate(LEFT_MIB - way.mib + 1)
    assert program.error(way.name, *way.arguments) == OUT_OF_MEMORY
    assert container.used_mib() == LIMIT_MIB - way.mib + 1
    assert [row.refused for row in container.cards[0].rows.values()] == [1]
    program.allocate(way.mib - 1)


@each_way
def test_what_the_driver_refuses_is_not_counted(driver: Driver, way: Way) -> None:
    container = driver.container(share(0, 10**9))
    with container.program() as program:
        program.allocate(15800)
        assert program.error(way.name, *way.arguments) == OUT_OF_MEMORY
        assert container.used_mib() == CONTEXT_MIB + 15800


def test_memory_of_another_process_counts_and_that_of_a_dead_one_does_not(container: Container) -> None:
    with container.program() as first, container.program() as second:
        first.allocate(LEFT_MIB - CONTEXT_MIB - 10)
        assert second.error("cuMemAlloc_v2", None, 11 * MIB) == OUT_OF_MEMORY
        first.process.kill()
        first.process.wait()
        second.allocate(LEFT_MIB)


def test_a_neighbour_does_not_notice_that_a_program_wants_too_much(container: Container) -> None:
    with container.program() as greedy, container.program() as neighbour:
        at = neighbour.allocate(100)
        while greedy.error("cuMemAlloc_v2", None, 50 * MIB) == 0:
            pass
        assert neighbour.error("cuMemFree_v2", at) == 0
        neighbour.allocate(100)


def test_freeing_what_was_never_allocated_is_the_drivers_answer(container: Container, program: Program) -> None:
    assert program.error("cuMemFree_v2", 12345) == 1
    assert program.error("cuMemFree_v2", 0) == 0
    assert container.used_mib() == CONTEXT_MIB


def test_what_the_driver_does_not_free_stays_counted(container: Container, program: Program) -> None:
    at = program.allocate(300)
    program.get("standInBreak", 700)
    assert program.error("cuMemFree_v2", at) == 700
    assert container.used_mib() == CONTEXT_MIB + 300
    program.get("standInBreak", 0)
    assert program.error("cuMemFree_v2", at) == 0
    assert container.used_mib() == CONTEXT_MIB


def test_each_card_has_its_own_limit(driver: Driver) -> None:
    container = driver.container(share(1, 200), share(0, 500))
    with container.program() as program:
        program.allocate(400)
        assert program.error("cuMemCreate", None, 101 * MIB, on_device(1), 0) == 0
        assert program.error("cuMemCreate", None, 101 * MIB, on_device(1), 0) == OUT_OF_MEMORY
        assert (container.used_mib(0), container.used_mib(1)) == (101, CONTEXT_MIB + 400)


def test_a_card_that_the_container_was_not_given_allocates_nothing(driver: Driver) -> None:
    with driver.container(share(0)).program() as program:
        assert program.error("cuMemCreate", None, MIB, on_device(1), 0) == 999
        assert program.error("cuDevicePrimaryCtxRetain", None, 1) == 999
        assert program.error("cuDeviceTotalMem_v2", None, 1) == 999


@pytest.mark.parametrize("flag", [0x40, 0x80], ids=["sparse", "deferred"])
def test_an_array_into_which_blocks_are_mapped_takes_nothing_itself(
    container: Container, program: Program, flag: int
) -> None:
    deep = struct.pack("=QQQIII4x", 1024, 1024, 50, FLOAT, 4, flag)
    program.get("cuArray3DCreate_v2", None, deep)
    program.get("cuMipmappedArrayCreate", None, deep, 2)
    assert container.used_mib() == CONTEXT_MIB


def test_memory_of_the_host_is_free(container: Container, program: Program) -> None:
    assert program.error("cuMemCreate", None, 10 * LIMIT_MIB * MIB, on_device(0, kind=2), 0) == 0
    assert container.used_mib() == CONTEXT_MIB


def test_a_child_of_fork_holds_nothing_of_its_parent(container: Container, program: Program) -> None:
    program.allocate(300)
    program.call("!fork")
    program.get("cuInit", 0)
    program.get("cuCtxSetCurrent", program.get("cuDevicePrimaryCtxRetain", None, 0))
    program.allocate(50)
    assert sorted(row.bytes // MIB for row in container.cards[0].rows.values()) == [150, 400]


def test_a_program_that_is_executed_holds_nothing_of_the_one_before(container: Container, program: Program) -> None:
    program.allocate(LEFT_MIB)
    program.call("!exec")
    program.get("cuInit", 0)
    program.get("cuCtxSetCurrent", program.get("cuDevicePrimaryCtxRetain", None, 0))
    program.allocate(LEFT_MIB)
    assert container.used_mib() == LIMIT_MIB


# --- contexts


def contexts(container: Container) -> tuple[int, int]:
    """How many contexts the account shows on the first card, and how many MiB were taken for them."""
    rows = container.cards[0].rows.values()
    return sum(row.contexts for row in rows), sum(row.context_bytes for row in rows) // MIB


@pytest.mark.parametrize(
    ("create", "between"),
    [("cuCtxCreate", ()), ("cuCtxCreate_v2", ()), ("cuCtxCreate_v3", (0, 0)), ("cuCtxCreate_v4", (0,))],
)
def test_a_context_counts_and_its_end_releases_what_was_allocated_in_it(
    container: Container, program: Program, create: str, between: tuple[int, ...]
) -> None:
    made = program.get(create, None, *between, 0, 0)
    assert container.used_mib() == 2 * CONTEXT_MIB
    assert contexts(container) == (2, 2 * CONTEXT_MIB)
    at = program.allocate(300)
    handle = program.get("cuMemCreate", None, 100 * MIB, on_device(0), 0)
    assert program.error("cuCtxDestroy_v2", made) == 0
    assert container.used_mib() == CONTEXT_MIB + 100  # handles are of no context
    assert program.error("cuMemFree_v2", at) != 0
    assert program.error("cuMemRelease", handle) == 0
    assert container.used_mib() == CONTEXT_MIB
    assert contexts(container) == (1, CONTEXT_MIB)


def test_a_green_context_counts_until_it_is_destroyed(container: Container, program: Program) -> None:
    made = program.get("cuGreenCtxCreate", None, 0, 0, 0)
    assert container.used_mib() == 2 * CONTEXT_MIB
    assert contexts(container) == (1, 2 * CONTEXT_MIB)
    assert program.error("cuGreenCtxDestroy", made) == 0
    assert container.used_mib() == CONTEXT_MIB
    assert contexts(container) == (1, CONTEXT_MIB)


def test_a_context_that_does_not_fit_is_out_of_memory(driver: Driver) -> None:
    container = driver.container(share(0, CONTEXT_MIB + 50))
    with container.program() as program:
        assert program.error("cuCtxCreate_v2", None, 0, 0) == OUT_OF_MEMORY
        assert contexts(container) == (1, CONTEXT_MIB)
        assert program.error("cuDevicePrimaryCtxRetain", None, 0) == 0, "it exists already"


@pytest.mark.parametrize("end", ["cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"])
def test_a_primary_context_counts_once_until_its_last_user_leaves(
    container: Container, program: Program, end: str
) -> None:
    program.get("cuDevicePrimaryCtxRetain", None, 0)
    program.allocate(100)
    assert program.error(end, 0) == 0
    assert container.used_mib() == CONTEXT_MIB + 100
    assert program.error(end, 0) == 0
    assert container.used_mib() == 0
    assert contexts(container) == (0, 0)
    program.get("cuCtxSetCurrent", program.get("cuDevicePrimaryCtxRetain", None, 0))
    assert container.used_mib() == CONTEXT_MIB
    assert contexts(container) == (1, CONTEXT_MIB)


def test_a_primary_context_outlives_the_context_in_which_it_was_made(container: Container) -> None:
    with container.program(with_context=False) as program:
        program.get("cuInit", 0)
        made = program.get("cuCtxCreate_v2", None, 0, 0)
        program.get("cuDevicePrimaryCtxRetain", None, 0)
        assert program.error("cuCtxDestroy_v2", made) == 0
        assert container.used_mib() == CONTEXT_MIB


@pytest.mark.parametrize("end", ["cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset"])
def test_a_reset_ends_a_primary_context_for_all_its_users(container: Container, program: Program, end: str) -> None:
    program.get("cuDevicePrimaryCtxRetain", None, 0)
    program.allocate(100)
    assert program.error(end, 0) == 0
    assert container.used_mib() == 0


# --- virtual memory


def test_a_block_ends_with_the_last_of_its_handles_and_mappings(container: Container, program: Program) -> None:
    handle = program.get("cuMemCreate", None, 20 * MIB, on_device(0), 0)
    at = program.get("cuMemAddressReserve", None, 100 * MIB, 0, 0, 0)
    for place in (0, 20):
        assert program.error("cuMemMap", at + place * MIB, 20 * MIB, 0, handle, 0) == 0
    assert program.error("cuMemRelease", handle) == 0
    again = program.get("cuMemCreate", None, 1 * MIB, on_device(0), 0)
    assert again == handle, "the driver hands it out again"
    assert program.error("cuMemRelease", again) == 0
    assert container.used_mib() == CONTEXT_MIB + 20
    retained = program.get("cuMemRetainAllocationHandle", None, at + 30 * MIB)
    assert program.error("cuMemUnmap", at, 40 * MIB) == 0
    assert container.used_mib() == CONTEXT_MIB + 20
    assert program.error("cuMemRelease", retained) == 0
    assert container.used_mib() == CONTEXT_MIB


def test_mappings_with_gaps_end_together(container: Container, program: Program) -> None:
    at = program.get("cuMemAddressReserve", None, 100 * MIB, 0, 0, 0)
    for place in (10, 30, 40):
        handle = program.get("cuMemCreate", None, 10 * MIB, on_device(0), 0)
        assert program.error("cuMemMap", at + place * MIB, 10 * MIB, 0, handle, 0) == 0
        assert program.error("cuMemRelease", handle) == 0
    assert program.error("cuMemUnmap", at + 20 * MIB, 80 * MIB) == 0
    assert container.used_mib() == CONTEXT_MIB + 10
    assert program.error("cuMemUnmap", at, 20 * MIB) == 0
    assert container.used_mib() == CONTEXT_MIB


def test_a_handle_that_was_retained_twice_is_released_twice(container: Container, program: Program) -> None:
    handle = program.get("cuMemCreate", None, 20 * MIB, on_device(0), 0)
    at = program.get("cuMemAddressReserve", None, 20 * MIB, 0, 0, 0)
    assert program.error("cuMemMap", at, 20 * MIB, 0, handle, 0) == 0
    assert program.get("cuMemRetainAllocationHandle", None, at) == handle
    assert program.error("cuMemUnmap", at, 20 * MIB) == 0
    assert program.error("cuMemRelease", handle) == 0
    assert container.used_mib() == CONTEXT_MIB + 20
    assert program.error("cuMemRelease", handle) == 0
    assert container.used_mib() == CONTEXT_MIB


# --- what a program asks


def test_a_program_sees_its_share(program: Program) -> None:
    program.allocate(300)
    assert program.call("cuMemGetInfo_v2", None, None) == [0, (LEFT_MIB - 300) * MIB, LIMIT_MIB * MIB]
    assert program.get("cuDeviceTotalMem_v2", None, 0) == LIMIT_MIB * MIB


def test_a_card_without_a_limit_is_shown_as_it_is(driver: Driver) -> None:
    with driver.container(share(0)._replace(memory=2**64 - 1)).program() as program:
        program.allocate(300)
        assert program.call("cuMemGetInfo_v2", None, None) == [0, (16000 - 400) * MIB, 16000 * MIB]


@pytest.mark.parametrize("file", ["account", "control"])
@pytest.mark.parametrize("content", [None, b"", b"Haccount", bytes(300_000)], ids=["missing", "empty", "cut", "zeros"])
def test_without_its_files_cuda_does_not_start(driver: Driver, file: str, content: bytes | None) -> None:
    container = driver.container()
    place = driver.folder / file
    place.unlink() if content is None else place.write_bytes(content)
    _does_not_start(container)


def test_an_account_in_the_place_of_the_control_file_does_not_start(driver: Driver) -> None:
    container = driver.container()
    (driver.folder / "control").write_bytes(new_account())
    _does_not_start(container)


@pytest.mark.parametrize("file", ["account", "control"])
def test_a_later_version_of_a_file_does_not_start(driver: Driver, file: str) -> None:
    container = driver.container()
    place = driver.folder / file
    place.write_bytes(place.read_bytes()[:8] + struct.pack("=Q", VERSION + 1) + place.read_bytes()[16:])
    _does_not_start(container)


def _does_not_start(container: Container) -> None:
    with container.program(with_context=False) as program:
        assert program.error("cuInit", 0) == 999
        assert program.error("cuMemAlloc_v2", None, 1) == 999
        assert program.error("cuMemGetInfo_v2", None, None) == 999


def test_functions_that_are_not_overridden_are_the_drivers(program: Program) -> None:
    assert program.get("cuDriverGetVersion", None) & 0xFFFFFFFF == 12080
