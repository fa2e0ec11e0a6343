"""Repairs a pod: writes amounts in their own unit on both sides, the core limit, and variables that hide GPUs.

Invariant: repairing twice changes nothing the second time, and an amount that needs no change is not rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from halfcard import names
from halfcard.added_resources import AddedResources, named_by, says, written
from halfcard.claims import MEMORY
from halfcard.patches import PatchOperation, Pointer, append
from halfcard.pod.requests import LIMITS, REQUESTS, RequestingContainer, ResourceRequest
from halfcard.pod.spec import Pod, PodSpec, Toleration, ephemeral_places
from halfcard.problems import NOT_EQUAL, QUOTA_GATE
from halfcard.quantity import Quantity

from .own_memory import names_own_memory, with_own_memory
from .policy import AdmissionPolicy, PlacementDefaults
from .rules.core_limit import default_limit, is_ours, limits_of, mark, whole_number_in
from .rules.requests import lacks_its_gate
from .rules.subject import Subject
from .rules.variables import unhidden

_ANY_SCHEDULER: Final = frozenset({None, "", names.DEFAULT_SCHEDULER})
_SEES_NOTHING = {"name": names.VISIBLE_DEVICES, "value": names.SEES_NOTHING}


class RepairedPod(NamedTuple):
    changes: tuple[PatchOperation, ...] = ()
    notes: tuple[str, ...] = ()


NO_REPAIRS: Final = RepairedPod()
_GATE_STAYS: Final = f"[{QUOTA_GATE.code}] {names.QUOTA_GATE} stays in spec.schedulingGates until there is room"


def repair_pod(subject: Subject) -> RepairedPod:
    added = _set_all_added(subject)
    ours = RepairedPod((*added.changes, *_hide_devices(subject)), added.notes)
    asks = any(request.asks for _, request in subject.asked)
    if not asks and names.CORE_LIMIT_DEFAULTED not in subject.pod.annotations:
        return ours
    asked = with_own_memory(subject.asked, subject.context.cluster.smallest_card_mib)
    changes = (*_fill_amounts(asked), *ours.changes, *set_annotations(subject.pod, _core_limits(subject)))
    if subject.claims:
        changes += tuple(_place(subject.pod, subject.context.policy.placement))
    return RepairedPod(changes, (*_notes(subject.asked), *ours.notes))


def repair_template(asked: tuple[RequestingContainer, ...]) -> RepairedPod:
    """Respells only fields that are there: the user's next apply would remove an added one again."""
    changes = tuple(
        PatchOperation("replace", _pointer(each, side, ask.resource), str(ask.amount))
        for each in asked
        for ask in _clear(each)
        for side in (LIMITS, REQUESTS)
        if ask.needs_respelling(side)
    )
    return RepairedPod(changes, tuple(_rounded(asked)))


def _pointer(asked: RequestingContainer, side: str, *resource: str) -> Pointer:
    return (*asked.place.pointer, "resources", side, *resource)


def _clear(asked: RequestingContainer) -> tuple[ResourceRequest, ...]:
    """Returns the unambiguous requests: where two amounts differ, neither is guessed, however mild the rule's
    severity is.
    """
    unclear = any(problem.code == NOT_EQUAL.code for problem in asked.request.problems)
    return () if unclear else (*asked.request.asks, *asked.request.implied)


# --- amounts ---------------------------------------------------------------------------------------------------------


def _fill_amounts(asked: tuple[RequestingContainer, ...]) -> Iterator[PatchOperation]:
    for each in asked:
        if not each.request.is_settled:
            yield from _fill_side(each, LIMITS)
            yield from _fill_side(each, REQUESTS)


def _fill_side(asked: RequestingContainer, side: str) -> Iterator[PatchOperation]:
    wanted = {ask.resource: _spelling(ask, side) for ask in _clear(asked)}
    yield from _write(asked, side, {resource: text for resource, text in wanted.items() if text is not None})


def _write(asked: RequestingContainer, side: str, texts: Mapping[str, str]) -> Iterator[PatchOperation]:
    """Yields the changes of one side; a missing side is added as a whole: JSON Patch creates no parents."""
    present = asked.amounts(side)
    if texts and not present:
        yield PatchOperation("add", _pointer(asked, side), texts)
        return
    for resource, text in texts.items():
        yield PatchOperation("replace" if resource in present else "add", _pointer(asked, side, resource), text)


def _spelling(ask: ResourceRequest, side: str) -> str | None:
    """Returns what to write on this side; None where it is right already."""
    if ask.written(side) is not None:
        return str(ask.amount) if ask.needs_respelling(side) else None
    other = REQUESTS if side == LIMITS else LIMITS
    text = ask.written(other)
    return str(ask.amount) if text is None or ask.needs_respelling(other) else text


def _notes(asked: tuple[RequestingContainer, ...]) -> Iterator[str]:
    yield from _rounded(asked)
    for each in asked:
        for ask in each.request.implied:
            yield f"{each.place.where}: {ask.resource}: {ask.amount} was added: the others only say how much of a card"


def _rounded(asked: tuple[RequestingContainer, ...]) -> Iterator[str]:
    for each in asked:
        for ask in each.request.asks:
            if ask.note:
                yield f"{each.place.where} {ask.resource}: {ask.note}"


# --- added resources -------------------------------------------------------------------------------------------------


def _set_all_added(subject: Subject) -> RepairedPod:
    wrong = [
        (each, side)
        for each in subject.added()
        for side in (LIMITS, REQUESTS)
        if not says(written(each.asked, side, each.resource), each.due)
    ]
    notes = [
        f"{each.asked.place.where} {each.resource}: {text} became {each.due}: only Halfcard sets it"
        for each, side in wrong
        if (text := written(each.asked, side, each.resource)) is not None
    ]
    return RepairedPod(tuple(_set_added(*each) for each in wrong), tuple(dict.fromkeys(notes)))


def _set_added(each: AddedResources, side: str) -> PatchOperation:
    """Sets an added resource. Both sides exist: the container requests a GPU, whose amounts were filled in before."""
    pointer = _pointer(each.asked, side, each.resource)
    if not each.due:
        return PatchOperation("remove", pointer)
    is_new = written(each.asked, side, each.resource) is None
    return PatchOperation("add" if is_new else "replace", pointer, str(each.due))


# --- core limit ------------------------------------------------------------------------------------------------------


def _core_limits(subject: Subject) -> dict[str, str | None]:
    """Returns the annotations to write; None removes one."""
    pod, asked = subject.pod, subject.asked
    wanted: dict[str, str | None] = {}
    for limit in limits_of(pod, asked):
        number = whole_number_in(limit.text)
        if number is not None and str(number) != limit.text:
            wanted[limit.key] = str(number)
    return wanted | _defaulted(pod, asked, subject.context.policy)


def _defaulted(pod: Pod, asked: tuple[RequestingContainer, ...], policy: AdmissionPolicy) -> dict[str, str | None]:
    present = pod.annotations
    marked = present.get(names.CORE_LIMIT_DEFAULTED)
    wanted: dict[str, str | None] = {}
    if is_ours(pod, marked):
        wanted = {(marked or "").partition("=")[0]: None, names.CORE_LIMIT_DEFAULTED: None}
    default = default_limit(asked) if policy.default_core_limit else None
    if default is not None:
        key, share = default
        if wanted or (key not in present and marked is None):
            wanted |= {key: str(share), names.CORE_LIMIT_DEFAULTED: mark(key, share)}
    return wanted


class Annotated(Protocol):
    """A Kubernetes object."""

    @property
    def metadata(self) -> object | None: ...

    @property
    def annotations(self) -> Mapping[str, str]: ...


def set_annotations(obj: Annotated, wanted: Mapping[str, str | None]) -> Iterator[PatchOperation]:
    """Yields the changes that write these annotations; None removes one."""
    present = obj.annotations
    fresh = {key: text for key, text in wanted.items() if text is not None}
    if not present:
        if fresh:
            yield _first_annotations(obj, fresh)
        return
    for key, text in wanted.items():
        if text is None and key in present:
            yield PatchOperation("remove", ("metadata", "annotations", key))
        elif text is not None and present.get(key) != text:
            yield PatchOperation("replace" if key in present else "add", ("metadata", "annotations", key), text)


def _first_annotations(obj: Annotated, fresh: dict[str, str]) -> PatchOperation:
    if obj.metadata is None:
        return PatchOperation("add", ("metadata",), {"annotations": fresh})
    return PatchOperation("add", ("metadata", "annotations"), fresh)


# --- containers that see no card -------------------------------------------------------------------------------------


def _hide_devices(subject: Subject) -> Iterator[PatchOperation]:
    """Hides GPUs from containers without a claim: an image with NVIDIA_VISIBLE_DEVICES=all would see all cards."""
    for place in unhidden(subject):
        yield append((*place.pointer, "env"), _SEES_NOTHING, to_existing=bool(place.container.env))


def hide_from_added(subject: Subject, old: Pod) -> RepairedPod:
    """Hides GPUs from the ephemeral containers that are added; a merge may put them before the others."""
    before = {place.container.name for place in ephemeral_places(old)}
    added = {place.pointer for place in ephemeral_places(subject.pod) if place.container.name not in before}
    return RepairedPod(tuple(change for change in _hide_devices(subject) if change.pointer[:3] in added))


# --- placement -------------------------------------------------------------------------------------------------------


def _place(pod: Pod, placement: PlacementDefaults) -> Iterator[PatchOperation]:
    spec = pod.spec
    if spec is None:
        return
    if _is_to_change_scheduler(pod, spec, placement.scheduler_name):
        yield PatchOperation("add", ("spec", "schedulerName"), placement.scheduler_name)
    if placement.runtime_class_name and not spec.runtime_class_name:
        yield PatchOperation("add", ("spec", "runtimeClassName"), placement.runtime_class_name)
    present = spec.tolerations or []
    missing = [_toleration(each) for each in placement.tolerations if each not in present]
    if missing and not present:
        yield PatchOperation("add", ("spec", "tolerations"), missing)
    elif missing:
        yield from (PatchOperation("add", ("spec", "tolerations", "-"), each) for each in missing)


def _is_to_change_scheduler(pod: Pod, spec: PodSpec, name: str | None) -> bool:
    """Returns whether a pod gets a scheduler's name; one of a DaemonSet runs on every node of its own anyway."""
    if name is None or names.DAEMON_LABEL in pod.labels:
        return False
    return spec.scheduler_name in _ANY_SCHEDULER - {name}


def _toleration(toleration: Toleration) -> dict[str, str]:
    fields: dict[str, str | None] = msgspec.to_builtins(toleration)
    return {field: text for field, text in fields.items() if text is not None}


# --- a manifest that is applied again --------------------------------------------------------------------------------


def restore(subject: Subject, old: tuple[RequestingContainer, ...]) -> RepairedPod:
    """Spells amounts as stored, when a manifest is applied again: the resources of a pod are immutable. The gate of a
    pod that waits is added again, since no manifest has it.
    """
    stored = {each.place.pointer: each for each in old}
    pairs = [(each, stored[each.place.pointer]) for each in subject.asked if each.place.pointer in stored]
    amounts = tuple(change for each, before in pairs for change in _restored(each, before))
    if not lacks_its_gate(subject):
        return RepairedPod(amounts)
    return RepairedPod((*amounts, quota_gate(subject.pod)), (_GATE_STAYS,))


def quota_gate(pod: Pod) -> PatchOperation:
    """Returns the change that adds the gate of a quota."""
    return append(("spec", "schedulingGates"), {"name": names.QUOTA_GATE}, to_existing=bool(pod.gates))


def _restored(asked: RequestingContainer, stored: RequestingContainer) -> Iterator[PatchOperation]:
    now = {ask.resource: ask for ask in _clear(asked)}
    pairs = [(now[before.resource], before) for before in stored.request.asks if before.resource in now]
    same = [(ask, before) for ask, before in pairs if ask.amount == before.amount or _was_lowered(stored, ask, before)]
    for side in (LIMITS, REQUESTS):
        texts = {before.resource: _as_stored(ask, before, side) for ask, before in same}
        ours = sorted(named_by(asked) | named_by(stored))
        differ = {each: written(stored, side, each) for each in ours if _differs(asked, stored, side, each)}
        texts |= differ
        yield from _write(asked, side, {resource: text for resource, text in texts.items() if text is not None})
        yield from (
            PatchOperation("remove", _pointer(asked, side, each)) for each, text in differ.items() if text is None
        )


def _was_lowered(stored: RequestingContainer, ask: ResourceRequest, before: ResourceRequest) -> bool:
    """Returns whether the stored amount may be what `with_own_memory` made of the written one."""
    claim, dialect = stored.claim, stored.request.dialect
    if claim is None or dialect is None or not names_own_memory(claim):
        return False
    unit = dialect.units.get(ask.resource)
    return unit is not None and unit.counted == MEMORY and ask.amount > before.amount


def _differs(asked: RequestingContainer, stored: RequestingContainer, side: str, resource: str) -> bool:
    return written(asked, side, resource) != written(stored, side, resource)


def _as_stored(ask: ResourceRequest, before: ResourceRequest, side: str) -> str | None:
    """Returns the stored spelling where Kubernetes would see another amount; None where the spelling may stay."""
    text, stored = ask.written(side), before.written(side)
    if stored is None or (text is not None and Quantity.parse(text) == Quantity.parse(stored)):
        return None
    return stored
