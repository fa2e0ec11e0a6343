"""Builders of nodes, pods and processes, and the usage that they result in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deviceplugin.gpus.interface import Load, Process
from deviceplugin.usage.cgroup_paths import Owner
from deviceplugin.usage.usage_report import NodeUsageReport, StartedPod, usage_of
from halfcard.cards import Card, Node
from halfcard.dialects import Dialects
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.pod_facts import PodFacts, read_facts
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import stored

T4_MIB: Final = 15109
NODE: Final = Node("gpu1", tuple(Card(at, "Tesla T4", T4_MIB, f"GPU-{at}") for at in range(2)))
IDLE: Final = Load(0, 0, ())


def id_of(name: str) -> str:
    """A container id as runtimes create them, derived from a name."""
    return name.encode().hex().ljust(64, "0")[:64]


def facts_of(asking: PodBuilder, name: str = "vcuda", namespace: str = "default") -> PodFacts:
    placed = stored(asking, f"uid-{name}", NODE.name)
    meta = placed.meta.__class__(name=name, namespace=namespace, uid=f"uid-{name}", creation_timestamp=name)
    return read_facts(placed.__class__(metadata=meta, spec=placed.spec), Dialects())


def tenant(
    asking: PodBuilder, name: str = "vcuda", *, apps: Sequence[str] = (), inits: Sequence[str] = ()
) -> StartedPod:
    """`apps` and `inits` have been started; their ids begin with the pod's name."""
    written = [{each: f"containerd://{id_of(f'{name}/{each}')}" for each in names} for names in (apps, inits)]
    return StartedPod(facts_of(asking, name), *written)


def owner(pod_name: str, container: str = "tensorflow") -> Owner:
    return Owner(f"uid-{pod_name}", id_of(f"{pod_name}/{container}"))


def usage(
    tenants: Sequence[StartedPod],
    loads: Mapping[str, Load] | None = None,
    owners: Mapping[int, Owner] | None = None,
    node: Node = NODE,
) -> NodeUsageReport:
    holding = usage_of_pods(node, [each.facts.bound() for each in tenants])
    every = {card.uuid: IDLE for card in node.cards} if loads is None else loads
    return usage_of(node, holding, tenants, every, owners or {})


def tensorflow(**words: str | float) -> PodBuilder:
    """A pod with one container named tensorflow, and its request."""
    asked = pod().asks(**words).manifest["spec"]["containers"][0]["resources"]
    return pod().container(name="tensorflow", limits=asked["limits"])


def load(*processes: Process) -> Load:
    return Load(
        sum(process.memory_mib for process in processes), sum(process.cores_pct for process in processes), processes
    )


SEED: Final = tenant(tensorflow(core=10, memory=4), apps=["tensorflow"])
