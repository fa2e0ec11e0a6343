"""The scheduler of the demonstration: asks the extender for a node over TLS, and lets it bind the pod there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from halfcard import names

from .tls_service import TlsService


class DemoScheduler(TlsService):
    """Stores pods in the folder that the extender reads, and schedules them on one node."""

    def __init__(self, url: str, ca_file: str, *, state: Path, node: str) -> None:
        super().__init__(url, ca_file)
        self._state = state
        self._node = node

    def run(self, pod: Mapping[str, Any]) -> Mapping[str, str]:
        """Stores and schedules a pod; returns its record, empty for a pod that requests no card or fits nowhere."""
        stored = {**pod, "metadata": {**pod["metadata"], "uid": str(uuid.uuid4())}}
        file = self._state / f"{pod['metadata']['name']}.json"
        file.write_text(json.dumps(stored, indent=2), encoding="utf-8")
        if self._fits(stored):
            self._bind(stored["metadata"])
        before, after = (each["metadata"].get("annotations", {}) for each in (stored, json.loads(file.read_text())))
        return {key: value for key, value in after.items() if key not in before}

    def _fits(self, pod: Mapping[str, Any]) -> bool:
        answer = self.post(names.FILTER_PATH, {"Pod": pod, "NodeNames": [self._node]})
        return self._node in (answer["NodeNames"] or ())

    def _bind(self, metadata: Mapping[str, Any]) -> None:
        named = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        if error := self.post(names.BIND_PATH, {**named, "Node": self._node})["Error"]:
            raise RuntimeError(f"a pod fits and was not bound: {error}")
