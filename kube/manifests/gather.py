"""Combines objects of manifests into one view of the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from halfcard.capacity import CapacityRules
from halfcard.cluster_view import ClusterView, read_node, separate
from halfcard.dra.driver_nodes import DeviceClass, DriverNodes, Published, ResourceSlice

from .documents import Document

_DEFAULT_NAMESPACE: Final = "default"
_OF_DRIVERS: Final[Mapping[str, type[Published]]] = {"DeviceClass": DeviceClass, "ResourceSlice": ResourceSlice}
_CLUSTER_WIDE: Final = frozenset({"Node", "Namespace", *_OF_DRIVERS})
_KNOWN: Final = _CLUSTER_WIDE | {"ConfigMap", "ResourceQuota"}

_Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""


def gather(documents: Iterable[Document], rules: CapacityRules) -> ClusterView:
    """Combines documents into one view; kinds that the view has no place for are skipped.

    Raises:
        ManifestError: an object has no name, or appears twice.
    """
    found = by_name(documents, _KNOWN)
    nodes, odd = separate(read_node(document.obj, rules) for document in found["Node"].values())
    return ClusterView(
        nodes=nodes,
        odd_nodes=odd,
        configmap_keys={key: _keys(document.obj) for key, document in found["ConfigMap"].items()},
        quotas=_by_namespace(found["ResourceQuota"]),
        namespaces=frozenset(name for _, name in found["Namespace"]),
        driver_nodes=_driver_nodes(document for kind in _OF_DRIVERS for document in found[kind].values()),
    )


def _driver_nodes(documents: Iterable[Document]) -> frozenset[str]:
    published = DriverNodes()
    for document in documents:
        add_published(published, document)
    return published.nodes()


def add_published(nodes: DriverNodes, document: Document) -> None:
    """Adds a DeviceClass or a ResourceSlice; what one that cannot be read says of a node is unknown."""
    if document.kind in _OF_DRIVERS:
        with suppress(msgspec.ValidationError):
            nodes.put(msgspec.convert(document.obj, _OF_DRIVERS[document.kind]))


def by_name(documents: Iterable[Document], kinds: frozenset[str]) -> Mapping[str, Mapping[_Key, Document]]:
    """Returns the objects of these kinds, by kind and by namespace and name; raises ManifestError like `gather`."""
    found: dict[str, dict[_Key, Document]] = defaultdict(dict)
    for document in documents:
        if document.kind in kinds:
            _add(document, found[document.kind])
    return found


def stored_pod(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a pod with the uid and the namespace that it may lack in a manifest."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return dict(obj)
    namespace = metadata.get("namespace") or _DEFAULT_NAMESPACE
    uid = metadata.get("uid") or f"{namespace}/{metadata.get('name')}"
    return {**obj, "metadata": {**metadata, "namespace": namespace, "uid": uid}}


def _add(document: Document, known: dict[_Key, Document]) -> None:
    key = _key(document)
    if key in known:
        first = known[key]
        what = f"{document.kind} {key[1]} is already in {first.source_file}:{first.line}"
        raise document.refused(what, "keep one of them")
    known[key] = document


def _key(document: Document) -> _Key:
    metadata = document.obj.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    name, namespace = found.get("name"), found.get("namespace") or _DEFAULT_NAMESPACE
    if not isinstance(name, str) or not name or not isinstance(namespace, str):
        raise document.refused(f"the {document.kind} has no name", "add metadata.name, in quotes if it is a number")
    return ("" if document.kind in _CLUSTER_WIDE else namespace, name)


def _keys(configmap: Mapping[str, Any]) -> frozenset[str]:
    parts = (configmap.get("data"), configmap.get("binaryData"))
    return frozenset(key for part in parts if isinstance(part, dict) for key in part)


def _by_namespace(quotas: Mapping[_Key, Document]) -> dict[str, tuple[Mapping[str, Any], ...]]:
    grouped: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for (namespace, _), document in quotas.items():
        grouped[namespace] = (*grouped.get(namespace, ()), document.obj)
    return grouped
