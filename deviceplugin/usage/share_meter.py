"""Measures what held containers use of their cards, and writes what exceeds their accounts into their control files.

The library then counts it: the memory of contexts and modules, and what the driver rounds up, is in no call that it
sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from halfcard.isolation.excess import excesses
from halfcard.isolation.shared_files import AccountCard, BrokenAccountError, Excess

from ..gpus.interface import GpusError, Load
from ..isolation.share_files import ShareFiles
from .accounts import AccountKey, Accounts, added_up, said_of
from .cgroup_paths import Owner
from .process_names import ProcessNames
from .usage_report import AccountUsage

_MIB: Final = 1 << 20


class HeldSlot(NamedTuple):
    """A slot with an account.

    Attributes:
        uid: that of its pod.
        container: empty where it may belong to one of several.
    """

    name: str
    uid: str
    container: str


class _Account(NamedTuple):
    slot: HeldSlot
    uuids: Sequence[str]
    cards: Sequence[AccountCard]


class ShareMeter:
    """Use it in one thread at a time; `load` and `owners` block."""

    def __init__(
        self,
        files: ShareFiles,
        load: Callable[[str], Load],
        owners: Callable[[Collection[int]], Mapping[int, Owner]],
        names: ProcessNames,
    ) -> None:
        self._files = files
        self._load = load
        self._owners = owners
        self._names = names
        self._written: dict[tuple[str, int], Sequence[Excess]] = {}
        self.accounts: Accounts = {}
        """What containers say of the processes that were measured last."""

    def measure(self, slots: Iterable[HeldSlot]) -> None:
        accounts = [account for slot in slots if (account := self._account(slot)) is not None]
        loads = {uuid: load for uuid in _uuids(accounts) if (load := self._load_of(uuid)) is not None}
        pids = {process.pid for load in loads.values() for process in load.processes}
        owners, names = self._owners(pids), self._names.of(pids)
        known = {account.slot.name for account in accounts}
        self._written = {key: excess for key, excess in self._written.items() if key[0] in known}
        updated = [self._update(account, loads, owners, names) for account in accounts]
        self.accounts = added_up(chain.from_iterable(updated))

    def _account(self, slot: HeldSlot) -> _Account | None:
        """Returns the account; None where its container has spoiled it: it is seen from outside all the same."""
        with suppress(BrokenAccountError, OSError):
            uuids = [f"GPU-{UUID(bytes=uuid)}" for uuid in self._files.uuids(slot.name)]
            return _Account(slot, uuids, self._files.account(slot.name))
        return None

    def _load_of(self, uuid: str) -> Load | None:
        with suppress(GpusError):
            return self._load(uuid)
        return None

    def _update(
        self, before: _Account, loads: Mapping[str, Load], owners: Mapping[int, Owner], names: Mapping[int, int]
    ) -> list[tuple[AccountKey, AccountUsage]]:
        """Writes the excess of each card that the driver reads; returns what the container says of these cards."""
        slot, said = before.slot, []
        if (after := self._account(slot)) is None:
            return []
        for at, uuid in enumerate(before.uuids):
            if uuid in loads:
                measured = _measured(slot.uid, loads[uuid], owners, names)
                self._write(slot.name, at, excesses(before.cards[at], measured, after.cards[at]))
                said.append(((slot.uid, slot.container, uuid), said_of(after.cards[at], measured)))
        return said if slot.container else []

    def _write(self, slot: str, at: int, excess: Sequence[Excess]) -> None:
        if self._written.get((slot, at)) != excess:
            with suppress(OSError):  # the slot has been removed
                self._files.write_excess(slot, at, excess)
                self._written[slot, at] = excess


def _uuids(accounts: Iterable[_Account]) -> frozenset[str]:
    return frozenset(uuid for account in accounts for uuid in account.uuids)


def _measured(uid: str, load: Load, owners: Mapping[int, Owner], names: Mapping[int, int]) -> dict[int, int]:
    """Returns the bytes of the processes of a pod on a card, by their names."""
    mine = [each for each in load.processes if each.pid in names and each.pid in owners and owners[each.pid].pod == uid]
    return {names[each.pid]: each.memory_mib * _MIB for each in mine}
