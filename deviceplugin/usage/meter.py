"""Measures usage now: reads the load of each card from the driver, and the owners of its processes from the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from halfcard.cards import Node
from halfcard.placing.node_usage import NodeUsage

from ..gpus.interface import GpusError, Load
from .accounts import Accounts, with_accounts
from .cgroup_paths import Owner
from .cgroups import Cgroups
from .process_owners import ProcessOwners
from .usage_report import IsolationState, NodeUsageReport, StartedPod, usage_of


class GrantedCards(NamedTuple):
    """The granted cards and their holders at one moment."""

    node: Node
    usage: NodeUsage
    pods: Sequence[StartedPod]


class Meter:
    """Measures usage for concurrent callers at once; `load` may block, the others run on the event loop."""

    def __init__(
        self,
        load: Callable[[str], Load],
        cgroups: Cgroups,
        granted_cards: Callable[[], GrantedCards],
        *,
        is_made_up: bool,
        accounts: Callable[[], Accounts] = dict,
        isolation: Callable[[], IsolationState] = IsolationState,
    ) -> None:
        self._accounts = accounts
        self._isolation = isolation
        self._load = load
        self._owners = ProcessOwners(cgroups)
        self._granted_cards = granted_cards
        self._is_made_up = is_made_up
        self._measuring: asyncio.Task[NodeUsageReport] | None = None

    async def usage(self) -> NodeUsageReport:
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.create_task(self._measure(), name="measure usage")
        return await asyncio.shield(self._measuring)

    async def _measure(self) -> NodeUsageReport:
        node, usage, pods = self._granted_cards()
        loads, owners = await asyncio.to_thread(self._read, [card.uuid for card in node.cards])
        found = usage_of(node, usage, pods, loads, owners, is_made_up=self._is_made_up)
        report = replace(found, isolation=self._isolation())
        return with_accounts(report, self._accounts())

    def _read(self, uuids: Iterable[str]) -> tuple[Mapping[str, Load], Mapping[int, Owner]]:
        loads = {uuid: load for uuid in uuids if (load := self._load_of(uuid)) is not None}
        pids = {process.pid for load in loads.values() for process in load.processes}
        return loads, self._owners.of(pids)

    def _load_of(self, uuid: str) -> Load | None:
        """Reads the load of a card; None where the driver does not answer, which is reported elsewhere."""
        try:
            return self._load(uuid)
        except GpusError:
            return None
