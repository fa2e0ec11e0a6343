"""`python -m bench.agent_server CONTAINERS FOLDER`: the agent's HTTP side over a simulated full node.

The cards' loads are in memory and the processes' cgroups in files below FOLDER, which are read as /proc is. Beside
the metrics it answers their floor: the same number of bytes, always the same ones.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deviceplugin.app import UsagePages, plain_app
from deviceplugin.gpus.interface import Load, Process
from deviceplugin.metrics import AgentMetrics
from deviceplugin.usage import usage_metrics
from deviceplugin.usage.cgroups import Cgroups
from deviceplugin.usage.meter import GrantedCards, Meter
from deviceplugin.usage.usage_report import StartedPod
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.dialects import Dialects
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.pod.stored_pod import StoredPod
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, serve
from serving.log import Log

AGENT: Final = "agent"
FLOOR: Final = "/bench/floor"
CARDS: Final = 8
_CARD_MIB: Final = 81559
_FIRST_PID: Final = 4_000_000


def main(containers: int, folder: Path) -> int:
    log = Log()
    return run(lambda lifecycle: _serve(_meter(containers, folder), lifecycle, log), log=log)


async def _serve(meter: Meter, lifecycle: Lifecycle, log: Log) -> None:
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry, is_made_up=False)
    for call in ("allocate", "prestart"):
        metrics.count_call(call, "ok", 0.001)
    app = plain_app(UsagePages(meter.usage, registry), checks={}, lifecycle=lifecycle, plain_metrics=True)
    constant = usage_metrics.write(await meter.usage()).encode()

    async def floor(_: Request) -> Response:
        return Response(constant, headers={"content-type": "text/plain"})

    app.routes.append(Route(FLOOR, floor))
    gc.freeze()  # as the agent does when it is ready
    await serve(
        [Listener(AGENT, "127.0.0.1", 0, app)],
        lifecycle=lifecycle,
        log=log,
        on_ready=lambda found: print(json.dumps({AGENT: f"http://{found[AGENT]}"}), flush=True),
    )


# --- a full node ------------------------------------------------------------------------------------------------------


def _meter(containers: int, folder: Path) -> Meter:
    node = Node("gpu1", tuple(Card(at, "NVIDIA H100 80GB HBM3", _CARD_MIB, f"GPU-{at}") for at in range(CARDS)))
    tenants = [_tenant(number) for number in range(containers)]
    for number in range(containers):
        _write_cgroup(folder, number)
    holding = usage_of_pods(node, [tenant.facts.bound() for tenant in tenants])
    loads = _loads(node, [at for each in tenants for at in holding.shares[each.facts.uid].layout[0]])
    return Meter(
        loads.__getitem__,
        Cgroups(folder / "cgroup", folder),
        lambda: GrantedCards(node, holding, tenants),
        is_made_up=False,
    )


def _tenant(number: int) -> StartedPod:
    return StartedPod(_facts(number), {"main": f"containerd://{_id(number)}"}, {})


def _facts(number: int) -> PodFacts:
    asks = {names.VCUDA_CORE: "4", names.VCUDA_MEMORY: "12"}
    pod = {
        "metadata": {"name": f"inference-7c9d8f-{number:05}", "namespace": "team-a", "uid": _uid(number)},
        "spec": {"nodeName": "gpu1", "containers": [{"name": "main", "resources": {"limits": asks}}]},
    }
    return read_facts(msgspec.convert(pod, StoredPod), Dialects())


def _loads(node: Node, positions: list[int]) -> dict[str, Load]:
    """One process for each container, on the card that it has."""
    found: dict[str, Load] = {}
    for at, card in enumerate(node.cards):
        pids = [_FIRST_PID + number for number, where in enumerate(positions) if where == at]
        found[card.uuid] = Load(2000 * len(pids), 3 * len(pids), tuple(Process(pid, 2000, 3) for pid in pids))
    return found


def _write_cgroup(folder: Path, number: int) -> None:
    """A cgroup path as cgroup v1 with the systemd driver writes it, which is the longest form."""
    slice_name = f"kubepods-burstable-pod{_uid(number).replace('-', '_')}.slice"
    path = f"/kubepods.slice/kubepods-burstable.slice/{slice_name}/cri-containerd-{_id(number)}.scope"
    controllers = (
        "pids",
        "hugetlb",
        "net_prio",
        "perf_event",
        "freezer",
        "devices",
        "memory",
        "cpuset",
        "cpu",
        "blkio",
    )
    file = folder / str(_FIRST_PID + number) / "cgroup"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{at}:{each}:{path}\n" for at, each in enumerate(controllers, 2)), encoding="ascii")


def _uid(number: int) -> str:
    return f"0f1a9f52-5c3e-4a0a-9d0e-{number:012x}"


def _id(number: int) -> str:
    return f"{number:064x}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
