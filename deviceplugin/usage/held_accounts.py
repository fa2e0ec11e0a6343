"""The account of a held container, with its limits and what the driver measured of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from halfcard.isolation.shared_files import AccountCard, CardControl

from ..gpus.interface import Load, Process
from .cgroup_paths import Owner
from .core_meter import CardOfSlot, MeteredCard


class HeldSlot(NamedTuple):
    """A slot with an account.

    Attributes:
        uid: that of its pod.
        container: empty where it may belong to one of several.
    """

    name: str
    uid: str
    container: str


class HeldAccount(NamedTuple):
    slot: HeldSlot
    controls: Sequence[CardControl]
    cards: Sequence[AccountCard]

    @property
    def uuids(self) -> Sequence[str]:
        return [f"GPU-{UUID(bytes=control.uuid)}" for control in self.controls]


class Measured(NamedTuple):
    """One measurement of the driver, and the processes that it named."""

    loads: Mapping[str, Load]
    owners: Mapping[int, Owner]
    names: Mapping[int, int]

    def of(self, pod: str, uuid: str) -> list[tuple[int, Process]]:
        """Returns the processes of a pod on a card, with their names."""
        mine = (each for each in self.loads[uuid].processes if each.pid in self.names and each.pid in self.owners)
        return [(self.names[each.pid], each) for each in mine if self.owners[each.pid].pod == pod]


def metered_cards(account: HeldAccount, seen: Measured) -> Iterator[MeteredCard]:
    """Yields the cards that the driver reads; only processes with a row claim GPU time."""
    for at, (uuid, control) in enumerate(zip(account.uuids, account.controls, strict=True)):
        if uuid in seen.loads:
            claiming = {row.process for row in account.cards[at].rows.values()}
            pct = sum(each.cores_pct for name, each in seen.of(account.slot.uid, uuid) if name in claiming)
            yield MeteredCard(CardOfSlot(account.slot.name, at), control, account.cards[at], pct)


def uuids_of(accounts: Iterable[HeldAccount]) -> frozenset[str]:
    return frozenset(uuid for account in accounts for uuid in account.uuids)
