"""Starts the stock scheduler with a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from ..cluster import Cluster
from ..objects import Object

_CONFIGURATIONS: Final = Path(__file__).parents[2] / "deploy" / "scheduler"

_SCHEDULER: Final = "kube-scheduler"
_SAID_BY_THE_FILE: Final = ("--kubeconfig=", "--config=", "--kube-api-")
_UNHURRIED: Final = {"qps": 5000, "burst": 5000}


def shipped(file: str, *, url: str | None, tls: Object) -> Object:
    """Returns a configuration of `deploy/scheduler` with an address and files of this cluster."""
    content: Object = yaml.safe_load((_CONFIGURATIONS / file).read_text())
    for extender in content["extenders"]:
        if url is not None:
            extender["urlPrefix"] = url
        if "tlsConfig" in extender:
            extender["tlsConfig"] |= tls
    return content


def schedule_by(cluster: Cluster, configuration: Object) -> None:
    """Restarts the scheduler with a configuration."""
    scheduler = cluster.components[_SCHEDULER]
    kubeconfig = next(
        each.partition("=")[2] for each in scheduler.command if each.startswith("--authentication-kubeconfig=")
    )
    connection = {**configuration["clientConnection"], "kubeconfig": kubeconfig, **_UNHURRIED}
    own = {**configuration, "clientConnection": connection, "leaderElection": {"leaderElect": False}}
    file = cluster.folder / "scheduler-configuration.yaml"
    file.write_text(yaml.safe_dump(own))
    kept = [each for each in scheduler.command if not each.startswith(_SAID_BY_THE_FILE)]
    scheduler.command = [*kept, f"--config={file}"]
    cluster.components.restart(_SCHEDULER)
