"""The webhook's listeners, from its settings and what it knows of the cluster: one over TLS, one plain."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from halfcard.cluster import ClusterView
from serving.address import Address
from serving.health import Check, health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener
from serving.log import Log
from serving.tls import ReloadingContext

from .app import admission_app
from .metrics import Metrics
from .policy import Policy

ADMISSION: Final = "admission"
STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Addresses:
    admission: Address
    status: Address


def listeners(
    policy: Policy,
    cluster: Callable[[], ClusterView],
    tls: ReloadingContext,
    *,
    addresses: Addresses,
    checks: dict[str, Check],
    lifecycle: Lifecycle,
    log: Log,
) -> Sequence[Listener]:
    registry = CollectorRegistry()
    app = admission_app(policy=policy, cluster=cluster, metrics=Metrics(registry), log=log)
    health = health_app(checks=checks, lifecycle=lifecycle, registry=registry)
    gc.freeze()  # what start-up made lives as long as the process: no collection needs to look at it again
    return (
        Listener(ADMISSION, addresses.admission.host, addresses.admission.port, app, tls),
        Listener(STATUS, addresses.status.host, addresses.status.port, health),
    )
