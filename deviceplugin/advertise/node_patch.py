"""Computes the patches that make the node object say what was announced.

Invariant: a label or a number that other programs also write is changed only while it is as we left it; what another
program wrote stays. So an annotation next to the inventory remembers what we wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.quantity import InvalidQuantity, Quantity

from .announcement import Announcement, Condition

_LEFT_BEHIND: Final = (names.ALIYUN_GPU_COUNT,)
"""gpushare's plugin leaves it in the status when it is removed: a value equal to ours is ours from then on."""


_NOT_ISOLATED: Final = Condition(holds=False, reason="IsolationOff", message="isolation is off")


class Patch(NamedTuple):
    """The difference, as two calls; `foreign` describes what other programs wrote and stays, a sentence each."""

    metadata: Mapping[str, Any]
    status: Mapping[str, Any]
    foreign: tuple[str, ...]


class _Written(msgspec.Struct, omit_defaults=True):
    """Our last write: labels with their values, and resources in the capacity."""

    labels: dict[str, str] = {}
    capacity: list[str] = []


def patch(node: Mapping[str, Any], wanted: Announcement, now: str) -> Patch:
    """Returns the patches that are needed; `now` has the format of the API server."""
    metadata, status = _mapping(node, "metadata"), _mapping(node, "status")
    labels, annotations = _mapping(metadata, "labels"), _mapping(metadata, "annotations")
    before = _read_written(annotations.get(names.ANNOUNCED))
    ours = _ours(wanted.capacity, _mapping(status, "capacity"), before.capacity)
    after = _Written(_our_labels(wanted.labels, labels, before.labels), sorted(ours))
    wanted_annotations = {names.ANNOUNCED: msgspec.json.encode(after, order="sorted").decode()}
    if wanted.inventory is not None:
        wanted_annotations[names.INVENTORY] = wanted.inventory
    changed = {
        "labels": _different(_wanted_labels(wanted, labels, before, after), labels),
        "annotations": _different(wanted_annotations, annotations),
    }
    return Patch(
        {field: values for field, values in changed.items() if values},
        _status(wanted, status, ours, sorted({*before.capacity} - wanted.capacity.keys()), now),
        tuple(_foreign(wanted.capacity.keys() - ours, status)),
    )


def _read_written(text: object) -> _Written:
    """Reads our last write; unreadable content was not written by us."""
    try:
        return msgspec.json.decode(text, type=_Written) if isinstance(text, str) else _Written()
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return _Written()


def _ours(wanted: Mapping[str, int], capacity: Mapping[str, Any], written: Sequence[str]) -> set[str]:
    """Returns the resources that only we count: kubelet leaves a 0 after a plugin has gone, and after a node came
    back.
    """
    found = {resource: _amount(capacity.get(resource)) for resource in wanted}
    left_behind = {each for each in _LEFT_BEHIND if each in wanted and found[each] == wanted[each]}
    return {resource for resource in wanted if resource in written or found[resource] == 0} | left_behind


def _our_labels(
    wanted: Mapping[str, str] | None, labels: Mapping[str, Any], written: Mapping[str, str]
) -> dict[str, str]:
    if wanted is None:
        return dict(written)
    return {
        label: value for label, value in wanted.items() if label not in labels or labels[label] == written.get(label)
    }


def _wanted_labels(
    wanted: Announcement, labels: Mapping[str, Any], before: _Written, after: _Written
) -> dict[str, str | None]:
    """Returns the label changes; None removes a label that we wrote and nothing has changed since."""
    made_up = {names.MADE_UP_LABEL: "true" if wanted.is_made_up else None}
    if wanted.labels is None:
        return {**made_up}
    withdrawn = [label for label, value in before.labels.items() if labels.get(label) == value]
    return {**dict.fromkeys(withdrawn), **after.labels, **made_up}


def _status(
    wanted: Announcement, status: Mapping[str, Any], ours: set[str], withdrawn: Sequence[str], now: str
) -> dict[str, Any]:
    """Kubelet copies capacity into allocatable, within ten seconds; the scheduler need not wait for it."""
    capacity = _mapping(status, "capacity")
    totals: dict[str, str | None] = {
        resource: str(wanted.capacity[resource])
        for resource in ours
        if resource not in capacity or _amount(capacity[resource]) != wanted.capacity[resource]
    }
    totals |= {resource: None for resource in withdrawn if resource in capacity}
    conditions = [*_changed_conditions(status.get("conditions"), wanted, now)]
    found: dict[str, Any] = {"capacity": totals, "allocatable": totals} if totals else {}
    return {**found, "conditions": conditions} if conditions else found


def _changed_conditions(there: object, wanted: Announcement, now: str) -> Iterator[dict[str, str]]:
    """Yields the conditions to write; a node on which isolation was never on has none for it."""
    found = [each for each in there if isinstance(each, dict)] if isinstance(there, list) else []
    before = {str(each.get("type")): each for each in found}
    isolation = wanted.isolation or (_NOT_ISOLATED if names.ISOLATION_CONDITION in before else None)
    for kind, condition in ((names.CARDS_CONDITION, wanted.condition), (names.ISOLATION_CONDITION, isolation)):
        changed = _changed_condition(kind, before.get(kind, {}), condition, now) if condition else None
        if changed:
            yield changed


def _changed_condition(kind: str, before: Mapping[str, Any], wanted: Condition, now: str) -> dict[str, str] | None:
    after = {
        "type": kind,
        "status": str(wanted.holds),
        "reason": wanted.reason,
        "message": wanted.message,
    }
    if after.items() <= before.items():
        return None
    since = before.get("lastTransitionTime") if before.get("status") == after["status"] else None
    return {**after, "lastHeartbeatTime": now, "lastTransitionTime": str(since or now)}


def _foreign(resources: set[str], status: Mapping[str, Any]) -> Iterator[str]:
    for resource in sorted(resources):
        yield (
            f'status.capacity["{resource}"]: got "{_mapping(status, "capacity").get(resource)}", which another'
            f" program wrote; one agent serves a resource; stop the other one or remove {resource} from node_resources,"
            " then set it to 0"
        )


def _different(wanted: Mapping[str, str | None], there: Mapping[str, Any]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if there.get(key) != value}


def _amount(written: object) -> int | None:
    """Returns the amount; 0 where it is absent, None where it cannot be read."""
    try:
        return 0 if written is None else Quantity.parse(str(written)).as_int()
    except InvalidQuantity:
        return None


def _mapping(obj: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = obj.get(key)
    return value if isinstance(value, Mapping) else {}
