"""Memory that is allocated in the order of a stream is limited, with what its pool keeps after it was freed."""

from __future__ import annotations

import struct

import pytest

from .node import CONTEXT_MIB, LIMIT_MIB, MIB, OUT_OF_MEMORY, Container, Driver, Program, share

STEP_MIB = 32
"""A pool of the stand-in driver grows by this."""

each_stream = pytest.mark.parametrize("suffix", ["", "_ptsz"])


def new_pool(program: Program, device: int = 0) -> int:
    return program.get("cuMemPoolCreate", None, struct.pack("=4i80x", 1, 0, 1, device))


@each_stream
def test_an_allocation_counts_with_what_its_pool_grew(container: Container, program: Program, suffix: str) -> None:
    program.get(f"cuMemAllocAsync{suffix}", None, 40 * MIB, 0)
    assert container.used_mib() == CONTEXT_MIB + 2 * STEP_MIB


@each_stream
def test_what_a_pool_keeps_counts_and_is_used_again(container: Container, program: Program, suffix: str) -> None:
    at = program.get(f"cuMemAllocAsync{suffix}", None, 800 * MIB, 0)
    assert program.error(f"cuMemFreeAsync{suffix}", at, 0) == 0
    assert container.used_mib() == CONTEXT_MIB + 800
    program.get("standInKeep", 1)
    program.get(f"cuMemAllocAsync{suffix}", None, 800 * MIB, 0)
    assert container.used_mib() == CONTEXT_MIB + 800


@each_stream
def test_an_allocation_that_exceeds_the_share_is_out_of_memory(
    container: Container, program: Program, suffix: str
) -> None:
    program.get(f"cuMemAllocAsync{suffix}", None, 800 * MIB, 0)
    assert program.error(f"cuMemAllocAsync{suffix}", None, 101 * MIB, 0) == OUT_OF_MEMORY
    assert container.used_mib() == CONTEXT_MIB + 800


@each_stream
def test_an_allocation_from_a_pool_is_limited(container: Container, program: Program, suffix: str) -> None:
    pool = new_pool(program)
    at = program.get(f"cuMemAllocFromPoolAsync{suffix}", None, 640 * MIB, pool, 0)
    assert program.error(f"cuMemAllocFromPoolAsync{suffix}", None, 300 * MIB, pool, 0) == OUT_OF_MEMORY
    assert program.error(f"cuMemFreeAsync{suffix}", at, 0) == 0
    assert program.error("cuMemPoolTrimTo", pool, 0) == 0
    assert container.used_mib() == CONTEXT_MIB


def refused(container: Container) -> int:
    return sum(row.refused for row in container.cards[0].rows.values())


@pytest.mark.parametrize(
    "name_and_arguments",
    [("cuMemAlloc_v2", None, 500 * MIB), ("cuMemCreate", None, 500 * MIB, struct.pack("=4i16x", 1, 0, 1, 0), 0)],
)
def test_pools_are_trimmed_before_another_allocation_is_refused(
    container: Container, program: Program, name_and_arguments: tuple[str, int | bytes | None]
) -> None:
    at = program.get("cuMemAllocAsync", None, 800 * MIB, 0)
    assert program.error("cuMemFreeAsync", at, 0) == 0
    name, *arguments = name_and_arguments
    assert program.error(name, *arguments) == 0
    assert container.used_mib() == CONTEXT_MIB + 500
    assert refused(container) == 0


def test_a_pool_is_trimmed_before_an_allocation_from_another_is_refused(container: Container, program: Program) -> None:
    at = program.get("cuMemAllocAsync", None, 800 * MIB, 0)
    assert program.error("cuMemFreeAsync", at, 0) == 0
    other = new_pool(program)
    program.get("cuMemAllocFromPoolAsync", None, 640 * MIB, other, 0)
    assert container.used_mib() == CONTEXT_MIB + 640
    assert refused(container) == 0
    assert program.error("cuMemAllocFromPoolAsync", None, 640 * MIB, other, 0) == OUT_OF_MEMORY
    assert refused(container) == 1


def test_what_a_pool_has_released_is_free_for_a_program_that_asks(container: Container, program: Program) -> None:
    at = program.get("cuMemAllocAsync", None, 640 * MIB, 0)
    assert program.error("cuMemFreeAsync", at, 0) == 0
    assert program.error("cuStreamSynchronize", 0) == 0
    assert program.call("cuMemGetInfo_v2", None, None) == [0, (LIMIT_MIB - CONTEXT_MIB) * MIB, LIMIT_MIB * MIB]
    assert container.used_mib() == CONTEXT_MIB


def test_a_stream_of_another_card_counts_there(container: Container, program: Program) -> None:
    first = program.get("cuDevicePrimaryCtxRetain", None, 0)
    program.get("cuCtxSetCurrent", program.get("cuDevicePrimaryCtxRetain", None, 1))
    stream = program.get("cuStreamCreate", None, 0)
    program.get("cuCtxSetCurrent", first)
    program.get("cuMemAllocAsync", None, STEP_MIB * MIB, stream)
    assert (container.used_mib(0), container.used_mib(1)) == (CONTEXT_MIB, CONTEXT_MIB + STEP_MIB)
    assert program.get("cuCtxGetCurrent", None) == first


def test_a_pool_of_another_card_counts_there(container: Container, program: Program) -> None:
    program.get("cuMemAllocFromPoolAsync", None, STEP_MIB * MIB, new_pool(program, 1), 0)
    assert (container.used_mib(0), container.used_mib(1)) == (CONTEXT_MIB, STEP_MIB)


def test_a_pool_that_is_destroyed_counts_what_is_not_freed_yet(container: Container, program: Program) -> None:
    pool = new_pool(program)
    kept = program.get("cuMemAllocFromPoolAsync", None, STEP_MIB * MIB, pool, 0)
    freed = program.get("cuMemAllocFromPoolAsync", None, 3 * STEP_MIB * MIB, pool, 0)
    assert kept and program.error("cuMemFreeAsync", freed, 0) == 0
    assert program.error("cuMemPoolDestroy", pool) == 0
    assert container.used_mib() == CONTEXT_MIB + STEP_MIB


def test_a_card_that_the_container_was_not_given_has_no_pools(driver: Driver) -> None:
    with driver.container(share(0)).program() as program:
        assert program.error("cuMemPoolCreate", None, struct.pack("=4i80x", 1, 0, 1, 1)) == 999


def test_without_its_files_no_pool_allocates(driver: Driver) -> None:
    container = driver.container()
    (driver.folder / "account").unlink()
    with container.program(with_context=False) as program:
        assert program.error("cuMemAllocAsync", None, MIB, 0) == 999
