"""Halfcard's webhook for a cluster on loopback: registered by URL, because Services cannot lead to loopback."""

from __future__ import annotations

from typing import Any

import yaml

from .installation import Installation, Replica


class PlainInstallation(Installation):
    """An installation with one replica, which the API server calls at its address."""

    def add_replica(self) -> Replica:
        replica = self.start_replica()
        self.replicas.append(replica)
        return replica

    def registration(self) -> str:
        objects = list(yaml.safe_load_all(super().registration()))
        (replica,) = self.replicas
        for webhook in (each for item in objects for each in item["webhooks"]):
            _lead_to(replica, webhook["clientConfig"])
        return str(yaml.safe_dump_all(objects))


def _lead_to(replica: Replica, client: dict[str, Any]) -> None:
    path = client.pop("service")["path"]
    client["url"] = f"https://{replica.host}:{replica.port}{path}"
