"""Starts what makes Services reachable from the pods of a node, and by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from .node import RealNode
from .service_proxy import READY

_ROOT: Final = Path(__file__).parents[2]


def start_services(node: RealNode) -> None:
    """Returns when Services are reached, until the node ends."""
    program = node.program(
        "services",
        *(sys.executable, "-m", "devcluster.nodes.service_proxy", str(node.cluster.admin.kubeconfig)),
        environment={"PYTHONPATH": str(_ROOT)},
    )
    node.cluster.wait_until(
        lambda: READY in program.log_tail(), what="Services to be reached", details=program.log_tail
    )
