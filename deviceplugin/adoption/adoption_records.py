"""Records the cards of adopted pods whose device ids name them."""

from __future__ import annotations

from collections.abc import Callable

from halfcard.cards import Node
from halfcard.placing.layouts import Layout
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import PlacedPod, RecordWriter, write
from kube.api.calls import ApiCalls
from serving.log import Log

from ..allocate.pod_calls import record
from ..kubelet.messages import RefusedError
from ..options import AgentOptions
from .adopted_containers import AdoptedPods


class AdoptionRecords:
    """Writes records; a pod that has changed since it was read is tried again at the next sweep."""

    def __init__(self, calls: ApiCalls, options: AgentOptions, log: Log, now_ns: Callable[[], int]) -> None:
        self._calls = calls
        self._options = options
        self._log = log
        self._now_ns = now_ns

    async def record(self, node: Node, adopted: AdoptedPods) -> None:
        for pod, layout in adopted.named:
            try:
                if await record(self._calls, pod, self._annotations(node, pod, layout)) is not None:
                    cards = sorted({node.cards[at].uuid for cards in layout for at in cards})
                    self._log.event("cards of another plugin recorded", pod=pod.title, cards=cards)
            except RefusedError as why:
                self._log.warning("cards of another plugin not recorded", why=str(why))

    def _annotations(self, node: Node, pod: PodFacts, layout: Layout) -> dict[str, str]:
        placed = PlacedPod(node, pod.containers, pod.demand.needs, layout)
        return write(placed, self._now_ns(), self._options.dialects, by=RecordWriter.AGENT)
