"""Watches DeviceClasses and ResourceSlices, where the API server has them and the process may read them.

Nothing waits for them: until they are known, the nodes of a driver are nodes without cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from halfcard.dra.driver_nodes import DeviceClass, DriverNodes, Published, ResourceSlice

from .api.access import Access
from .api.informer import Informer
from .api.list_watch import Collection, Undecodable, WatchEvent, decoded

COLLECTIONS: Final[Mapping[str, type[Published]]] = {
    "/apis/resource.k8s.io/v1/deviceclasses": DeviceClass,
    "/apis/resource.k8s.io/v1/resourceslices": ResourceSlice,
}


class DriverWatches:
    """The informers, which update `nodes` while they run."""

    def __init__(self, access: Access, nodes: DriverNodes) -> None:
        self._nodes = nodes
        self.informers = [self._informer(access, path, kind) for path, kind in COLLECTIONS.items()]

    def problems(self) -> tuple[str, ...]:
        return tuple(each.trouble for each in self.informers if each.trouble)

    def _informer(self, access: Access, path: str, kind: type[Published]) -> Informer[Published]:
        def listed(found: Sequence[Published | Undecodable]) -> None:
            self._nodes.replace(kind, [each for each in found if not isinstance(each, Undecodable)])

        collection: Collection[Published] = Collection(access, path, kind)
        name = path.rpartition("/")[2]
        return Informer(collection, listed=listed, changed=self._change, name=name, may_be_absent=True)

    def _change(self, changes: Sequence[WatchEvent[Published]]) -> None:
        for found, is_deleted in decoded(changes):
            (self._nodes.drop if is_deleted else self._nodes.put)(found)
