"""Stores the grants of containers, by slot: a slot is one set of device ids of one resource.

Invariant: the runtime reads our record itself, so the two cannot differ. A file exists completely or not at all. A
record is removed when kubelet lists its ids for no pod of that name and no process of its pod lives; until then its
cards count as used.

A runtime reads all descriptions again whenever one is added or removed. So a record is shown to it while its container
is created, and hidden after that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from halfcard import names
from halfcard.isolation.holding import Holding
from halfcard.isolation.shared_files import CardControl
from halfcard.placing.card_usage import CardUse

from ..inject.cdi import Edits, description, record_in
from ..isolation.share_files import ShareFiles
from ..kubelet.messages import ListedDevices
from .assignment import RunningPod

_PREFIX: Final = names.CDI_KIND.replace("/", "-") + "_"
_SUFFIX: Final = ".json"
_ASIDE: Final = f".{names.OWN_DOMAIN}"
"""The folder of records, within the folder of descriptions, which are links to them; the runtime skips it."""

_DRAFT: Final = ".new"
_RETIRED: Final = ".left"
_LIMITS: Final = "limits.json"


class Slot(msgspec.Struct, frozen=True):
    """One grant.

    Attributes:
        uid: the uid under which kubelet runs the pod.
        containers: all containers that it may be.
        uses: the peak use of its pod, by the names of its cards.
        written_ns: the time of writing; of two pods of one name kubelet means the later one.
        holding: what holds the container to its share; None for one without limits, and where isolation is off.
    """

    namespace: str
    pod: str
    uid: str
    containers: tuple[str, ...]
    resource: str
    ids: tuple[str, ...]
    uses: dict[str, CardUse]
    written_ns: int
    holding: Holding | None = None

    @property
    def name(self) -> str:
        return slot_name(self.resource, self.ids)

    @property
    def only_container(self) -> str:
        """Returns the container; empty where it may be one of several."""
        return self.containers[0] if len(self.containers) == 1 else ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}"


def slot_name(resource: str, ids: Iterable[str]) -> str:
    text = "\0".join([resource, *sorted(ids)])
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


_RECORD: Final = msgspec.json.Decoder(Slot)


class Slots:
    """The slots of this node; `descriptions` is the folder that the runtime reads, `state` our own; `shares` has the
    files of held containers.
    """

    def __init__(self, descriptions: Path, state: Path, shares: ShareFiles) -> None:
        self._descriptions = descriptions
        self._records = descriptions / _ASIDE
        self._state = state / "slots"
        self._shares = shares
        self._slots: dict[str, Slot] = {}
        self._retired: dict[Path, Slot] = {}
        self._shown: dict[str, int] = {}

    def __iter__(self) -> Iterator[Slot]:
        """Iterates over the slots with which containers may start."""
        return iter(self._slots.values())

    def load(self) -> tuple[str, ...]:
        """Reads all records; call it once, first. Returns what was unreadable and removed, a sentence each."""
        for folder in (self._descriptions, self._records, self._state):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        spoiled = [why for path in sorted(self._records.iterdir()) if (why := self._load(path))]
        for draft in self._descriptions.glob(f"{_PREFIX}*{_DRAFT}"):
            draft.unlink()
        for file in self._descriptions.glob(f"{_PREFIX}*{_SUFFIX}"):
            name = file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            if name in self._slots and file.samefile(self._record(self._slots[name])):
                self._shown[name] = self._slots[name].written_ns
            else:
                file.unlink()
        self._clear([*(folder.name for folder in self._state.iterdir()), *self._shares.slots()])
        return tuple(spoiled)

    def _load(self, path: Path) -> str:
        slot = None if path.suffix == _DRAFT else _read(path)
        if slot is not None and path.suffix == _RETIRED:
            self._retired[path] = slot
        elif slot is not None and path == self._record(slot):
            self._slots[slot.name] = slot
        else:
            path.unlink()
            if path.suffix != _DRAFT:
                return (
                    f"{path}: it is no valid record and was removed; the cards of its container no longer count as used"
                )
        return ""

    # --- one slot -----------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Slot | None:
        return self._slots.get(name)

    def folder(self, name: str) -> Path:
        return self._state / name

    def limits_file(self, name: str) -> Path:
        return self.folder(name) / _LIMITS

    def write(
        self, slot: Slot, edits: Edits, version: str, limits: bytes, controls: Sequence[CardControl] = ()
    ) -> None:
        """Writes a slot and shows it to the runtime; a held container has controls."""
        name = slot.name
        if controls:
            self._shares.write(name, controls)
        self.folder(name).mkdir(mode=0o755, parents=True, exist_ok=True)
        _write_file(self.folder(name) / f"{_LIMITS}{_DRAFT}", limits, self.limits_file(name))
        record = msgspec.json.encode(slot).decode()
        _write_file(self._records / f"{name}{_DRAFT}", description(name, record, edits, version), self._record(slot))
        self._slots[name] = slot
        self.show(name, slot.written_ns)

    def show(self, name: str, now_ns: int) -> None:
        """Shows a slot to the runtime again."""
        draft = self._file(name).with_suffix(_DRAFT)  # runtimes overlook a file that is renamed from another folder
        draft.unlink(missing_ok=True)
        os.link(self._record(self._slots[name]), draft)
        draft.rename(self._file(name))
        draft.unlink(missing_ok=True)  # still there where the slot was shown already
        self._shown[name] = now_ns

    def show_all(self, now_ns: int) -> None:
        """Shows all slots, for containers that restart while no agent runs."""
        for name in self._slots:
            self.show(name, now_ns)

    def hide(self, before_ns: int) -> None:
        """Hides the slots that were shown before this time: their containers have been created."""
        for name in [name for name, shown_ns in self._shown.items() if shown_ns < before_ns]:
            self._hide(name)

    def _hide(self, name: str) -> None:
        self._shown.pop(name, None)
        self._file(name).unlink(missing_ok=True)

    def retire(self, resource: str, ids: Iterable[str]) -> None:
        """Retires the slots of ids that kubelet allocates again. Their containers may not start again, but may still
        run.
        """
        taken = frozenset(ids)
        for slot in [each for each in self if each.resource == resource and not taken.isdisjoint(each.ids)]:
            self._retire(slot)

    def _retire(self, slot: Slot) -> None:
        del self._slots[slot.name]
        self._hide(slot.name)
        record = self._record(slot)
        retired = record.with_name(record.name + _RETIRED)
        self._retired[retired] = slot
        with contextlib.suppress(FileNotFoundError):
            record.rename(retired)

    def _file(self, name: str) -> Path:
        return self._descriptions / f"{_PREFIX}{name}{_SUFFIX}"

    def _record(self, slot: Slot) -> Path:
        return self._records / f"{slot.name}.{slot.uid}"

    # --- all of them --------------------------------------------------------------------------------------------------

    def other_pods(self, uid: str) -> list[RunningPod]:
        """Returns the pods that hold cards, without this one."""
        found: dict[str, Slot] = {}
        for slot in self._all():
            if slot.uid != uid:
                found[slot.uid] = slot
        return [RunningPod(slot.title, slot.uses) for slot in found.values()]

    def uids(self) -> frozenset[str]:
        return frozenset(slot.uid for slot in self._all())

    def _all(self) -> Iterator[Slot]:
        yield from self._slots.values()
        yield from self._retired.values()

    def unlisted_pods(self, held: Iterable[ListedDevices]) -> frozenset[str]:
        """Returns the pods, by uid, with slots that kubelet no longer lists."""
        kept = {slot.name for slot in listed_slots(self._slots.values(), held)}
        silent = [slot for slot in self if slot.name not in kept]
        return frozenset(slot.uid for slot in (*silent, *self._retired.values()))

    def remove_ended(self, before_ns: int, held: Iterable[ListedDevices], living: Collection[str]) -> tuple[Slot, ...]:
        """Removes the slots that have ended and returns them; `held` was read after `before_ns`, `living` later."""
        kept = {slot.name for slot in listed_slots(self._slots.values(), held)}
        older = [slot for slot in self if slot.written_ns < before_ns]
        ended = [slot for slot in older if slot.uid not in living and slot.name not in kept]
        for slot in ended:
            self._hide(slot.name)
            self._record(slot).unlink(missing_ok=True)
            del self._slots[slot.name]
        retired = {path: slot for path, slot in self._retired.items() if slot.uid not in living}
        for path in retired:
            path.unlink(missing_ok=True)
            del self._retired[path]
        freed = (*ended, *retired.values())
        self._clear(slot.name for slot in freed)
        return freed

    def _clear(self, ended: Iterable[str]) -> None:
        """Clears the folders of these slots; another pod may have been allocated the same ids since."""
        known = {slot.name for slot in self._all()}
        for name in set(ended) - known:
            shutil.rmtree(self.folder(name), ignore_errors=True)
            self._shares.remove(name)


def listed_slots(slots: Collection[Slot], held: Iterable[ListedDevices]) -> list[Slot]:
    """Returns the slots that kubelet still lists. It lists names, which StatefulSets reuse: the latest slot counts."""
    ids: dict[tuple[str, str, str], frozenset[str]] = {}
    for each in held:
        key = each.namespace, each.pod, each.resource
        ids[key] = ids.get(key, frozenset()) | each.ids
    latest = _latest(slots)
    return [
        slot
        for slot in slots
        if latest[slot.namespace, slot.pod] == slot.uid
        and not ids.get((slot.namespace, slot.pod, slot.resource), frozenset()).isdisjoint(slot.ids)
    ]


def _latest(slots: Iterable[Slot]) -> Mapping[tuple[str, str], str]:
    in_order = sorted(slots, key=lambda slot: slot.written_ns)
    return {(slot.namespace, slot.pod): slot.uid for slot in in_order}


def _read(path: Path) -> Slot | None:
    try:
        name, record = record_in(path.read_bytes())
        slot = _RECORD.decode(record)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return slot if slot.name == name else None


def _write_file(draft: Path, content: bytes, path: Path) -> None:
    """Writes by rename: a reader of the path finds the old content or the complete new one."""
    draft.write_bytes(content)
    draft.chmod(0o644)  # regardless of our umask: containers run as any user
    draft.rename(path)
