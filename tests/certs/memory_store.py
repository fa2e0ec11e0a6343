"""An API server's store in memory, with versions; other calls may run before each call."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

import jsonpatch

from certs.chains import CONFIGURATIONS, ObjectPath
from certs.objects import Object, with_entries

T = TypeVar("T")


class _Turn:
    """Yields to the test that drives the coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class MemoryStore:
    """A store in memory.

    Attributes:
        items: the stored objects, which a test may change.
        wrote: called with each write.
    """

    def __init__(self, wrote: Callable[[], None] = lambda: None) -> None:
        self.items: dict[ObjectPath, Object] = {}
        self.wrote = wrote
        self.writes = 0
        self._version = 0

    async def read(self, place: ObjectPath) -> Object | None:
        await _Turn()
        return copy.deepcopy(self.items.get(place))

    async def create(self, place: ObjectPath, item: Object) -> bool:
        await _Turn()
        if place in self.items:
            return False
        self.put(place, item)
        return True

    async def replace(self, place: ObjectPath, item: Object) -> bool:
        await _Turn()
        if place not in self.items or self._is_outrun(place, item["metadata"]["resourceVersion"]):
            return False
        self.put(place, item)
        return True

    async def patch(self, place: ObjectPath, operations: bytes) -> bool:
        await _Turn()
        if place not in self.items:
            return False
        item = jsonpatch.apply_patch(self.items[place], json.loads(operations))
        if self._is_outrun(place, item["metadata"]["resourceVersion"]):
            return False
        self.put(place, item)
        return True

    def _is_outrun(self, place: ObjectPath, version: str) -> bool:
        return bool(self.items[place]["metadata"]["resourceVersion"] != version)

    def put(self, place: ObjectPath, item: Object) -> None:
        self._version += 1
        self.writes += 1
        metadata = {**item["metadata"], "resourceVersion": str(self._version)}
        self.items[place] = copy.deepcopy({**item, "metadata": metadata})
        self.wrote()

    # --- what others do

    def register(self, *bundles: bytes) -> None:
        """Stores both configurations with one webhook for each bundle."""
        for place in CONFIGURATIONS:
            webhooks = [{"name": str(at), "clientConfig": _client(bundle)} for at, bundle in enumerate(bundles)]
            self.put(place, {"metadata": {"name": place.name}, "webhooks": webhooks})

    def set_entry(self, place: ObjectPath, key: str, value: bytes) -> None:
        self.put(place, with_entries(self.items[place], {key: value}))

    def annotate(self, place: ObjectPath, name: str, value: str) -> None:
        item = self.items[place]
        annotations = {**(item["metadata"].get("annotations") or {}), name: value}
        self.put(place, {**item, "metadata": {**item["metadata"], "annotations": annotations}})

    def delete(self, place: ObjectPath) -> None:
        self.items.pop(place, None)
        self.wrote()


def _client(bundle: bytes) -> dict[str, Any]:
    service: Final = {"service": {"name": "s"}}
    return {**service, "caBundle": base64.b64encode(bundle).decode()} if bundle else {**service}


def finished(running: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine without other calls in between."""
    try:
        while True:
            running.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
