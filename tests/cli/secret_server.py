"""The part of an API server's wire that `halfcard certs` needs: a store's objects, some of which may not be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from certs.chains import ObjectPath
from tests.certs.memory_store import MemoryStore
from tests.kube.listening import JsonHandler, listening

from .list_server import config


@contextmanager
def cluster_with(store: MemoryStore, folder: Path, *, hidden: tuple[ObjectPath, ...] = ()) -> Iterator[Path]:
    """Yields a kubeconfig."""

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802  (http.server's name)
            place = _place(self.path)
            if place in hidden:
                return self.answer(403, {"message": f'secrets "{place.name}" is forbidden'})
            return self._tell(place)

        def do_PATCH(self) -> None:  # noqa: N802  (as above)
            place, body = _place(self.path), self.asked()
            if place in store.items and "dryRun" not in parse_qs(urlsplit(self.path).query):
                for name, value in body["metadata"]["annotations"].items():
                    store.annotate(place, name, value)
            self._tell(place)

        def _tell(self, place: ObjectPath) -> None:
            item = store.items.get(place)
            self.answer(*((404, {"message": "not found"}) if item is None else (200, item)))

    with listening(Handler) as port:
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config(f"http://127.0.0.1:{port}")))
        yield file


def _place(path: str) -> ObjectPath:
    collection, _, name = urlsplit(path).path.rpartition("/")
    return ObjectPath(collection, name)
