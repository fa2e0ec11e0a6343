"""Makes, applies and reads changes to objects as JSON Patch (RFC 6902)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

Pointer = tuple[str | int, ...]


class PatchOperation(NamedTuple):
    """One operation; `add` also replaces an existing member."""

    op: Literal["add", "replace", "remove"]
    pointer: Pointer
    value: Any = None

    def as_json(self) -> dict[str, Any]:
        operation: dict[str, Any] = {"op": self.op, "path": json_pointer(self.pointer)}
        return operation if self.op == "remove" else operation | {"value": self.value}


def append(pointer: Pointer, value: Any, *, to_existing: bool) -> PatchOperation:
    """Returns the change that appends to a list, or creates it, since JSON Patch creates no parents."""
    return PatchOperation("add", (*pointer, "-"), value) if to_existing else PatchOperation("add", pointer, [value])


def from_json(operation: Mapping[str, Any]) -> PatchOperation:
    """Reads one operation that a webhook sent; list positions stay text until it is applied."""
    tokens = operation["path"].split("/")[1:]
    pointer = tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)
    return PatchOperation(operation["op"], pointer, operation.get("value"))


def json_pointer(pointer: Pointer) -> str:
    return "/" + "/".join([str(part).replace("~", "~0").replace("/", "~1") for part in pointer]) if pointer else ""


def as_json(changes: Iterable[PatchOperation]) -> list[dict[str, Any]]:
    return [change.as_json() for change in changes]


def apply(obj: Any, changes: Iterable[PatchOperation]) -> Any:
    """Returns the object after the changes; the original is not modified, and unchanged parts are shared."""
    for change in changes:
        obj = _applied(obj, change.pointer, change)
    return obj


def _applied(node: Any, pointer: Pointer, change: PatchOperation) -> Any:
    return _in_list(node, pointer, change) if isinstance(node, list) else _in_mapping(node, pointer, change)


def _in_mapping(node: Mapping[Any, Any], pointer: Pointer, change: PatchOperation) -> dict[Any, Any]:
    part, rest = pointer[0], pointer[1:]
    copy = dict(node)
    if rest:
        copy[part] = _applied(copy[part], rest, change)
    elif change.op == "remove":
        del copy[part]
    else:
        copy[part] = change.value
    return copy


def _in_list(node: list[Any], pointer: Pointer, change: PatchOperation) -> list[Any]:
    """Applies a change to a list: `add` inserts, and `-` is the position after the last item."""
    part, rest = pointer[0], pointer[1:]
    copy = list(node)
    position = len(copy) if part == "-" else int(part)
    if rest:
        copy[position] = _applied(copy[position], rest, change)
    elif change.op == "remove":
        del copy[position]
    elif change.op == "add":
        copy.insert(position, change.value)
    else:
        copy[position] = change.value
    return copy


def value_at(obj: Any, pointer: Pointer) -> Any:
    """Returns the value at the pointer; None where there is none."""
    for part in pointer:
        if isinstance(obj, Mapping):
            obj = obj.get(part)
        elif isinstance(obj, list) and str(part).isdecimal() and int(part) < len(obj):
            obj = obj[int(part)]
        else:
            return None
    return obj


def field_path(pointer: Pointer) -> str:
    """Spells a pointer like Kubernetes spells field paths: spec.containers[0].resources.limits["a/b"]."""
    text = ""
    for part in pointer:
        if isinstance(part, int) or part == "-" or part.isdecimal():
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


_PART: Final = re.compile(r'\["(?P<quoted>.*?)"\]|\[(?P<position>[0-9]+|-)\]|(?P<name>[^.\[]+)')


def from_field_path(text: str) -> Pointer:
    """Reads a pointer that `field_path` spells."""
    parts = (match.groupdict() for match in _PART.finditer(text))
    return tuple(_part(each["position"]) if each["position"] else each["quoted"] or each["name"] for each in parts)


def _part(position: str) -> str | int:
    return int(position) if position.isdecimal() else position
