"""Measures what held containers use of their cards, and writes into their control files what the libraries cannot know.

That is what exceeds their accounts: the memory of contexts and modules, and what the driver rounds up, is in no call
that a library sees. And it is how long kernels really take, and whether a neighbour needs the cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final
from uuid import UUID

from halfcard.isolation.context_size import context_size
from halfcard.isolation.excess import excesses
from halfcard.isolation.shared_files import (
    BrokenAccountError,
    Excess,
    context_of_control,
    cores_of_control,
    excess_of_control,
    measured_at_of_control,
)

from ..gpus.interface import GpusError, Load
from ..isolation.share_files import ShareFiles
from .accounts import AccountKey, Accounts, added_up, said_of
from .cgroup_paths import Owner
from .context_sizes import ContextSizes
from .core_meter import CoreMeter
from .held_accounts import HeldAccount, HeldSlot, Measured, metered_cards, uuids_of
from .process_names import ProcessNames
from .usage_report import AccountUsage

_MIB: Final = 1 << 20


class ShareMeter:
    """Use it in one thread at a time; `load` and `owners` block."""

    def __init__(
        self,
        files: ShareFiles,
        load: Callable[[str], Load],
        owners: Callable[[Collection[int]], Mapping[int, Owner]],
        names: ProcessNames,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._files = files
        self._load = load
        self._owners = owners
        self._names = names
        self._now_ns = now_ns
        self._cores = CoreMeter()
        self._contexts = ContextSizes()
        self._written: dict[tuple[str, int], Sequence[Excess]] = {}
        self.accounts: Accounts = {}
        """What containers say of the processes that were measured last."""

    def measure(self, slots: Iterable[HeldSlot]) -> None:
        accounts = [account for slot in slots if (account := self._account(slot)) is not None]
        loads = {uuid: load for uuid in uuids_of(accounts) if (load := self._load_of(uuid)) is not None}
        pids = {process.pid for load in loads.values() for process in load.processes}
        seen = Measured(loads, self._owners(pids), self._names.of(pids))
        known = {account.slot.name for account in accounts}
        self._written = {key: excess for key, excess in self._written.items() if key[0] in known}
        updated = [self._update(account, seen) for account in accounts]
        self.accounts = added_up(chain.from_iterable(updated))
        self._write_contexts(accounts)
        self._write_cores(accounts, seen)

    def _account(self, slot: HeldSlot) -> HeldAccount | None:
        """Returns the account; None where its container has spoiled it: it is seen from outside all the same."""
        with suppress(BrokenAccountError, OSError):
            controls = self._files.controls(slot.name)
            return HeldAccount(slot, controls, self._files.account(slot.name, len(controls)))
        return None

    def _load_of(self, uuid: str) -> Load | None:
        with suppress(GpusError):
            return self._load(uuid)
        return None

    def _update(self, before: HeldAccount, seen: Measured) -> list[tuple[AccountKey, AccountUsage]]:
        """Writes the excess of each card that the driver reads; returns what the container says of these cards."""
        slot, said = before.slot, []
        if (after := self._account(slot)) is None:
            return []
        for at, uuid in enumerate(before.uuids):
            if uuid in seen.loads:
                measured = {name: process.memory_mib * _MIB for name, process in seen.of(slot.uid, uuid)}
                self._write(slot.name, at, excesses(before.cards[at], measured, after.cards[at]))
                self._contexts.see(uuid, context_size(before.cards[at], measured, after.cards[at]))
                said.append(((slot.uid, slot.container, uuid), said_of(after.cards[at], measured)))
        return said if slot.container else []

    def _write(self, slot: str, at: int, excess: Sequence[Excess]) -> None:
        if self._written.get((slot, at)) != excess:
            with suppress(OSError):  # the slot has been removed
                self._files.change(slot, excess_of_control(at, excess))
                self._written[slot, at] = excess

    def _write_contexts(self, accounts: Iterable[HeldAccount]) -> None:
        """Writes what is taken for a context from now on; what was taken for earlier ones stays."""
        sizes = self._contexts.measured()
        for account in accounts:
            for at, (uuid, control) in enumerate(zip(account.uuids, account.controls, strict=True)):
                if (size := sizes.get(uuid, 0)) != control.context:
                    with suppress(OSError):
                        self._files.change(account.slot.name, context_of_control(at, size))

    def _write_cores(self, accounts: Iterable[HeldAccount], seen: Measured) -> None:
        """Writes what holds for seconds, and when it was measured, also where it is the same as before."""
        now_ns = self._now_ns()
        held = [card for account in accounts for card in metered_cards(account, seen)]
        all_pct = {
            UUID(uuid.removeprefix("GPU-")).bytes: sum(each.cores_pct for each in load.processes)
            for uuid, load in seen.loads.items()
        }
        for (slot, at), words in self._cores.words(held, all_pct, now_ns).items():
            with suppress(OSError):
                change = cores_of_control(at, spare=words.spare, correction=words.correction)
                self._files.change(slot, change, measured_at_of_control(now_ns))
