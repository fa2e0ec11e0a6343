"""Streams inspections node by node, so that the scheduler's calls are answered between two nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Final

import msgspec

from halfcard.cards import Node
from halfcard.placing.node_totals import Offer

from .explain.inspection import gpushare_node_json, inspect
from .state import State

_PIECE: Final = 64 * 1024
_encode: Final = msgspec.json.Encoder().encode


class OneByOne:
    """Takes one part of one answer in each turn of the event loop, however many answers are streamed."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def stream(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the parts, joined to pieces of at least 64 KiB."""
        piece = bytearray()
        while part := await self._next(parts):
            piece += part
            if len(piece) >= _PIECE:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)

    async def _next(self, parts: Iterator[bytes]) -> bytes:
        async with self._turn:
            part = next(parts, b"")
            await asyncio.sleep(0)
        return part


def inspection_parts(state: State, table: Mapping[str, Offer]) -> Iterator[bytes]:
    """Yields the JSON of all nodes and doubts; a node that is removed meanwhile is left out."""
    yield from _nodes(state, lambda node: _encode(inspect(state, node, table)))
    yield b'],"doubts":' + _encode(state.inconsistencies()) + b"}"


def gpushare_parts(state: State, unit_mib: int) -> Iterator[bytes]:
    """Yields the same in the format of gpushare."""
    yield from _nodes(state, lambda node: _encode(gpushare_node_json(state, node, unit_mib)))
    yield b"]}"


def _nodes(state: State, encode: Callable[[Node], bytes]) -> Iterator[bytes]:
    before = b'{"nodes":['
    for name in list(state.nodes()):
        if (node := state.nodes().get(name)) is not None:
            yield before + encode(node)
            before = b","
    if before != b",":
        yield before
