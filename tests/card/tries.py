"""What is tried on a card: each returns a verdict, and needs a card that nobody else uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from subprocess import Popen
from typing import Final

from . import verdicts
from .facts import last_answer
from .node import PATIENCE_S, CardNode, Container, used_mib, utilisation
from .verdicts import Filled, Verdict

EXPANDABLE: Final = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
SECONDS: Final = 20
TURNS: Final = 5
US: Final = 10**6
MATMUL, LAUNCHES = "matmul", "launches"


def learn_context(node: CardNode) -> Verdict:
    before = used_mib()
    with node.bare().start("fills", 0) as program:
        _line(program)
        node.context_mib = used_mib() - before
    return Verdict(node.context_mib > 0, f"{node.context_mib} MiB")


def _line(program: Popen[str]) -> Mapping[str, int]:
    assert program.stdout is not None
    return last_answer(program.stdout.readline())


def _filled(container: Container, **variables: str) -> Filled:
    before = used_mib()
    with container.start("fills", 1, **variables) as program:
        said = _line(program)
        return Filled(said["taken"], said["total"], used_mib() - before)


def _share_mib(node: CardNode, pct: int) -> int:
    return node.card.memory_mib * pct // 100


def memory(node: CardNode) -> Verdict:
    share = _share_mib(node, 30)
    return verdicts.of_memory(share, _filled(node.container("memory", share)))


def expandable_segments(node: CardNode) -> Verdict:
    share = _share_mib(node, 30)
    return verdicts.of_memory(share, _filled(node.container("segments", share), **EXPANDABLE))


def two_memories(node: CardNode) -> Verdict:
    """Fills 30 and 70 per cent of the card at the same time; the second is judged, the first is left alone."""
    small, large = (node.container(f"of-{pct}", _share_mib(node, pct) - node.context_mib) for pct in (30, 70))
    with small.start("fills", 1) as program:
        _line(program)
        return verdicts.of_memory(_share_mib(node, 70) - node.context_mib, _filled(large))


def graphs(node: CardNode) -> Verdict:
    return verdicts.of_answer(node.container("graphs", _share_mib(node, 30), 50).run("graphs"))


def vllm(node: CardNode) -> Verdict:
    return verdicts.of_answer(node.container("vllm", _share_mib(node, 50), 100).run("serves"))


def _rates(*containers: Container) -> list[float]:
    """Returns the rounds per second of containers that multiply at the same time."""
    with ExitStack() as stack:
        programs = [stack.enter_context(each.start("works", MATMUL, SECONDS)) for each in containers]
        return [last_answer(each.communicate(timeout=PATIENCE_S)[0])["rate"] for each in programs]


def cores(node: CardNode) -> Verdict:
    (alone,) = _rates(node.bare())
    shares = {"30": 30, "70": 70}
    rates = _rates(*(node.container(f"cores-{name}", None, pct) for name, pct in shares.items()))
    return verdicts.of_cores(shares, dict(zip(shares, rates, strict=True)), alone)


def process_utilisation(node: CardNode) -> Verdict:
    """Samples two programs that nothing holds, each second."""
    samples = []
    with node.bare().start("works", MATMUL, SECONDS), node.bare().start("works", MATMUL, SECONDS):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            since = time.time_ns() // 1000
            time.sleep(1)
            samples.append(utilisation(since))
    return verdicts.of_utilisation(samples[SECONDS // 2 :])


def _overhead(node: CardNode, work: str) -> Verdict:
    held = node.container(f"overhead-{work}", node.card.memory_mib, 100)
    times = [
        (node.bare().run("works", work, 0)["seconds"], held.run("works", work, 0)["seconds"]) for _ in range(TURNS)
    ]
    return verdicts.of_overhead(*zip(*times, strict=True))


def overhead_of_a_matmul(node: CardNode) -> Verdict:
    return _overhead(node, MATMUL)


def overhead_of_launches(node: CardNode) -> Verdict:
    return _overhead(node, LAUNCHES)


TRIES: Final[Mapping[str, Callable[[CardNode], Verdict]]] = {
    "the memory of a context": learn_context,
    "PyTorch fills its share": memory,
    "PyTorch with expandable segments": expandable_segments,
    "shares of 30 and 70 filled at once": two_memories,
    "PyTorch with graphs": graphs,
    "vLLM": vllm,
    "cores of 30 and 70": cores,
    "utilisation of processes adds up": process_utilisation,
    "overhead of a matmul": overhead_of_a_matmul,
    "overhead of a loop of launches": overhead_of_launches,
}
