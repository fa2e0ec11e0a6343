"""Memory that a graph allocates is limited, however the graph was made."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from .node import CONTEXT_MIB, LIMIT_MIB, MIB, OUT_OF_MEMORY, Container, Program

ALLOCATES = 10
"""CU_GRAPH_NODE_TYPE_MEM_ALLOC"""


def node(mib: int) -> bytes:
    """CUDA_MEM_ALLOC_NODE_PARAMS of the first card."""
    return struct.pack("=4i88xQ8x", 1, 0, 1, 0, mib * MIB)


def by_node(program: Program, mib: int) -> int:
    graph = program.get("cuGraphCreate", None, 0)
    program.get("cuGraphAddMemAllocNode", 0, graph, 0, 0, node(mib))
    return graph


def by_any_node(program: Program, mib: int) -> int:
    graph = program.get("cuGraphCreate", None, 0)
    program.get("cuGraphAddNode", 0, graph, 0, 0, struct.pack("=i12x", ALLOCATES) + node(mib))
    return graph


def by_any_node_with_edges(program: Program, mib: int) -> int:
    graph = program.get("cuGraphCreate", None, 0)
    program.get("cuGraphAddNode_v2", 0, graph, 0, 0, 0, struct.pack("=i12x", ALLOCATES) + node(mib))
    return graph


def by_capture(program: Program, mib: int) -> int:
    return _captured(program, "cuMemAllocAsync", mib)


def by_capture_of_a_pool(program: Program, mib: int) -> int:
    return _captured(program, "cuMemAllocFromPoolAsync", mib, program.get("cuDeviceGetMemPool", None, 0))


def _captured(program: Program, function: str, mib: int, *pool: int) -> int:
    stream = program.get("cuStreamCreate", None, 0)
    program.get("cuStreamBeginCapture_v2", stream, 0)
    program.get(function, None, mib * MIB, *pool, stream)
    return program.get("cuStreamEndCapture", stream, None)


each_way = pytest.mark.parametrize(
    "make",
    [by_node, by_any_node, by_any_node_with_edges, by_capture, by_capture_of_a_pool],
    ids=lambda make: make.__name__,
)


@each_way
@pytest.mark.parametrize("launch", ["cuGraphLaunch", "cuGraphLaunch_ptsz", "cuGraphUpload", "cuGraphUpload_ptsz"])
def test_what_a_graph_allocates_counts_from_its_launch_on(
    container: Container, program: Program, make: Callable[[Program, int], int], launch: str
) -> None:
    graph = make(program, 300)
    assert container.used_mib() == CONTEXT_MIB
    program.get(launch, graph, 0)
    assert container.used_mib() == CONTEXT_MIB + 300
    assert program.error("cuMemAlloc_v2", None, (LIMIT_MIB - CONTEXT_MIB - 300 + 1) * MIB) == 0, (
        "what is kept is trimmed"
    )


def test_graphs_that_exceed_the_share_are_launched_once(container: Container, program: Program) -> None:
    graph = by_node(program, LIMIT_MIB)
    at = program.allocate(10)
    program.get("cuGraphLaunch", graph, 0)
    assert container.used_mib() == LIMIT_MIB + CONTEXT_MIB + 10
    program.get("standInKeep", 1)  # the graph runs, so nothing can be trimmed
    for launch in ("cuGraphLaunch", "cuGraphUpload"):
        assert program.error(launch, graph, 0) == OUT_OF_MEMORY
    assert program.error("cuMemFree_v2", at) == 0
    program.get("standInKeep", 0)
    program.get("cuGraphLaunch", graph, 0)


def test_a_graph_that_allocates_nothing_is_launched_in_a_full_container(container: Container, program: Program) -> None:
    graph = program.get("cuGraphCreate", None, 0)
    program.get("cuGraphAddNode", 0, graph, 0, 0, struct.pack("=i140x", 0))
    program.allocate(LIMIT_MIB - CONTEXT_MIB)
    program.get("cuGraphLaunch", graph, 0)
    assert container.used_mib() == LIMIT_MIB
