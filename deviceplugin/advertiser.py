"""Keeps kubelet and the API server informed of what this node offers.

Invariant: until pods, node and cards have been seen, the node offers only what containers hold already, so that nothing
is over-committed by mistake and no running container loses its devices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from .advertise.announcement import Condition, announcement
from .advertise.node_writer import NodeWriter
from .advertise.supply import Supply
from .card_watch import CardWatch
from .device_ids import ListedIds
from .kubelet.channel import KubeletError
from .kubelet.messages import Device
from .kubelet.plugins import Plugins
from .node_view import NodeView

_TOGETHER_S: Final = 0.03
"""Changes within this time are sent together: kubelet iterates over all ids at every change."""

_KNOWN_WITHIN_S: Final = 5.0
_AGAIN_S: Final = 1.0


class Advertiser:
    """Advertises; `stale` is set after each change; `is_known` is set once pods, node and cards are known.

    `held` maps each resource to our ids that live pods hold; `isolation` is whether shares are held to them.
    """

    def __init__(
        self,
        view: NodeView,
        cards: CardWatch,
        plugins: Plugins,
        node_writer: NodeWriter,
        *,
        held: Callable[[], Awaitable[Mapping[str, set[str]]]],
        until_known: Callable[[], Awaitable[object]],
        isolation: Callable[[], Condition | None],
        stale: asyncio.Event,
        is_made_up: bool,
    ) -> None:
        self._view = view
        self._cards = cards
        self._plugins = plugins
        self._node_writer = node_writer
        self._list_held = held
        self._until_known = until_known
        self._isolation = isolation
        self._stale = stale
        self._is_made_up = is_made_up
        self._held: Mapping[str, set[str]] = {}
        self._listed: dict[str, ListedIds] = {}
        self._later: asyncio.TimerHandle | None = None
        self.is_known = False

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:  # a failure of either ends both
            seeing = group.create_task(self._wait_until_known(), name="read what pods hold")
            await asyncio.wait((seeing,), timeout=_KNOWN_WITHIN_S)
            await self._offer_forever()

    async def _offer_forever(self) -> None:
        while True:
            self._stale.clear()
            await self._offer()
            await self._stale.wait()
            self._add_ids_at_once()
            await asyncio.sleep(_TOGETHER_S)

    async def _wait_until_known(self) -> None:
        await self._until_known()
        self.is_known = True
        self._stale.set()

    async def _offer(self) -> None:
        await self._update_held()
        if not self.is_known:
            self._offer_to_kubelet(dict.fromkeys(self._held, 0))
            return
        self._view.read_slicing()
        found = self._view.supply()
        self._offer_to_kubelet(found.ids)
        self._update_node(found)

    def _add_ids_at_once(self) -> None:
        """Publishes added ids at once: kubelet rejects a pod that was just bound to newly free cards if it comes
        first.
        """
        if not self.is_known:
            return
        totals = self._view.supply().ids
        at_least = {each: max(len(listed.offered), totals.get(each, 0)) for each, listed in self._listed.items()}
        self._offer_to_kubelet(at_least)

    async def _update_held(self) -> None:
        """Reads which ids are held; keeps the last answer where that fails."""
        try:
            self._held = await self._list_held()
        except KubeletError:
            asyncio.get_running_loop().call_later(_AGAIN_S, self._stale.set)

    def _offer_to_kubelet(self, totals: Mapping[str, int]) -> None:
        now = asyncio.get_running_loop().time()
        for resource in totals.keys() | self._listed.keys():
            held = self._held.get(resource, ()) if resource in totals else ()
            self._listed[resource] = self._listed.get(resource, ListedIds()).next(held, totals.get(resource, 0), now)
        for resource in [each for each, listed in self._listed.items() if each not in totals and not any(listed)]:
            del self._listed[resource]
        self._plugins.offer({resource: _devices(listed) for resource, listed in self._listed.items()})
        self._schedule(
            min([until for each in self._listed.values() for until in each.withdrawn.values()], default=None)
        )

    def _schedule(self, time: float | None) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = None if time is None else asyncio.get_running_loop().call_at(time, self._stale.set)

    def _update_node(self, found: Supply) -> None:
        node = self._view.offered()
        wanted = announcement(
            node.cards,
            found.status,
            slices=node.slices,
            is_made_up=self._is_made_up,
            trouble=self._cards.trouble,
            isolation=self._isolation(),
        )
        self._node_writer.announce(wanted, (*found.problems, *self._view.slicing_problems, *self._plugins.problems()))


def _devices(listed: ListedIds) -> list[Device]:
    withdrawn = [Device(each, healthy=False) for each in listed.withdrawn]
    return [*map(Device, listed.offered), *withdrawn]
