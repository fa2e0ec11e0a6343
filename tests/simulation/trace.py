"""A small trace in the tables' format: some nodes of three models, and pods of every size."""

from __future__ import annotations

from random import Random
from typing import Final

from simulation.openb import read_nodes, read_pods
from simulation.workload import ReplayWorkload

NODE_HEADS: Final = "sn,cpu_milli,memory_mib,gpu,model"
POD_HEADS: Final = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos"
_MODELS: Final = (("G2", 8), ("T4", 2), ("V100M16", 4), ("", 0))
_SIZES: Final = ((0, 0), (1, 120), (1, 250), (1, 460), (1, 810), (1, 1000), (1, 1000), (2, 1000), (4, 1000), (8, 1000))


def node_table(nodes: int = 12) -> str:
    rows = [f"n{at:03},{48000 + 16000 * cards},262144,{cards},{model}" for at, (model, cards) in enumerate(_MODELS * 9)]
    return "\n".join([NODE_HEADS, *rows[:nodes]]) + "\n"


def pod_table(pods: int = 60, seed: int = 1) -> str:
    random = Random(seed)
    return "\n".join([POD_HEADS, *[_row(at, random) for at in range(pods)]]) + "\n"


def _row(at: int, random: Random) -> str:
    cards, milli = random.choice(_SIZES)
    spec = random.choice(("", "", "", "G2", "G2|T4")) if cards in (1, 2) else ""
    return f"p{at:04},{random.choice((1000, 4000, 9000))},{random.choice((2048, 16384))},{cards},{milli},{spec},LS"


def workload(nodes: int = 12, pods: int = 60, seed: int = 1) -> ReplayWorkload:
    return ReplayWorkload(read_nodes(node_table(nodes), "nodes"), read_pods(pod_table(pods, seed), "pods"))
