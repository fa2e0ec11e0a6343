"""Writes a binding into the text of a manifest: node and annotations of one pod. No other character changes.

Invariant: the new text means the old objects and the binding, or there is no new text. Anchors, merges and keys that
the pod has already cannot break that, since the new text is parsed and compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from .documents import Document, ManifestError, parse

_FIX: Final = "write its metadata, spec and annotations out: no anchors, merges or empty nodeName"


class Binding(NamedTuple):
    node: str
    annotations: Mapping[str, str]


def bound(obj: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    """Returns the pod as the API server would store it after the binding."""
    metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    annotations = {**(metadata.get("annotations") or {}), **binding.annotations}
    changed = {"annotations": annotations} if annotations else {}
    return {**obj, "metadata": {**metadata, **changed}, "spec": {**spec, "nodeName": binding.node}}


def with_binding(text: str, pod: Document, binding: Binding) -> str:
    """Returns the text with the binding in the document of the pod.

    Raises:
        ManifestError: the text has no place for it.
    """
    wanted = [bound(each.obj, binding) if each.obj == pod.obj else each.obj for each in _objects(text, pod)]
    for mapping in _pods(text, pod):
        changed = _inserted(text, mapping, binding)
        if changed is not None and _objects_or_none(changed, pod) == wanted:
            return changed
    raise pod.refused("the binding cannot be written into this text", _FIX)


def _objects(text: str, pod: Document) -> Iterator[Document]:
    return parse(text, pod.source_file)


def _objects_or_none(text: str, pod: Document) -> list[dict[str, Any]] | None:
    try:
        return [each.obj for each in _objects(text, pod)]
    except ManifestError:
        return None


def _pods(text: str, pod: Document) -> Iterator[yaml.MappingNode]:
    """Yields the mappings that may be the pod: documents and items of lists with its name."""
    try:
        for root in yaml.compose_all(text, Loader=yaml.CSafeLoader):
            yield from (each for each in _with_items(root) if _name(each) == pod.obj["metadata"]["name"])
    except yaml.YAMLError:  # JSON that is no YAML
        return


def _with_items(node: Any) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        yield node
        items = _member(node, "items")
        for item in items.value if isinstance(items, yaml.SequenceNode) else ():
            yield from _with_items(item)


def _member(node: Any, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for found, value in pairs if found.value == key), None)


def _name(node: yaml.MappingNode) -> Any:
    name = _member(_member(node, "metadata"), "name")
    return None if name is None else name.value


# --- insertions ------------------------------------------------------------------------------------------------------


class _Insertion(NamedTuple):
    start: int
    end: int
    text: str


def _inserted(text: str, pod: yaml.MappingNode, binding: Binding) -> str | None:
    """Returns the text with the binding; None where a part of the pod is missing or empty."""
    spec, metadata = _member(pod, "spec"), _member(pod, "metadata")
    insertions = [_first(spec, {"nodeName": binding.node})]
    if binding.annotations:
        insertions.append(_annotations(metadata, binding.annotations))
    found = [each for each in insertions if each is not None]
    if len(found) < len(insertions):
        return None
    for each in sorted(found, reverse=True):
        text = text[: each.start] + each.text + text[each.end :]
    return text


def _annotations(metadata: Any, added: Mapping[str, str]) -> _Insertion | None:
    known = _member(metadata, "annotations")
    if known is None:
        return _first(metadata, {"annotations": added})
    if known.value and isinstance(known, yaml.MappingNode):
        return _first(known, added)
    return _Insertion(known.start_mark.index, known.end_mark.index, f" {json.dumps(dict(added))}")


def _first(mapping: Any, added: Mapping[str, Any]) -> _Insertion | None:
    """Inserts members before the first one of a mapping, in its style; None where it has none."""
    if not isinstance(mapping, yaml.MappingNode) or not mapping.value:
        return None
    mark = mapping.value[0][0].start_mark
    if mapping.flow_style:
        members = "".join(f"{json.dumps(key)}: {_value(value)}, " for key, value in added.items())
    else:
        members = "".join(f"{key}: {_value(value)}\n{' ' * mark.column}" for key, value in added.items())
    return _Insertion(mark.index, mark.index, members)


def _value(value: Any) -> str:
    return json.dumps(value if isinstance(value, str) else dict(value))
