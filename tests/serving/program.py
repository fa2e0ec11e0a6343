"""A small process like Halfcard's: work on one listener, health on another. Prints its ports when ready."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from serving.address import Address
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, StopTimings, serve
from serving.log import Log
from tests.serving.conversation import Echo

LOG = Log()


def tell_ports(addresses: Mapping[str, Address]) -> None:
    sys.stdout.write(json.dumps({name: address.port for name, address in addresses.items()}) + "\n")
    sys.stdout.flush()


async def main(lifecycle: Lifecycle) -> None:
    health = health_app(checks={}, lifecycle=lifecycle, registry=CollectorRegistry())
    await serve(
        [Listener("work", "127.0.0.1", 0, Echo()), Listener("status", "127.0.0.1", 0, health)],
        lifecycle=lifecycle,
        log=LOG,
        stopping=StopTimings(grace_s=float(sys.argv[1]), drain_s=0.1),
        on_ready=tell_ports,
    )


if __name__ == "__main__":
    sys.exit(run(main, log=LOG))
