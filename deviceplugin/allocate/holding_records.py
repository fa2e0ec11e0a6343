"""Records at pods what holds their containers to their shares, after these have started: no start waits for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.isolation.holding import Holding, read_holdings, with_driver, write_holdings
from halfcard.placing.pod_facts import PodFacts
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from .slots import Slot


@dataclass(slots=True)
class HoldingRecords:
    """Writes each record once; what the API server refuses is tried again when it differs, or after a restart."""

    calls: ApiCalls
    log: Log
    _tried: dict[str, str] = field(default_factory=dict)

    async def record(
        self, slots: Iterable[Slot], pods: Mapping[str, PodFacts], by_driver: Collection[str] = ()
    ) -> None:
        """Records what is not recorded yet.

        Args:
            slots: the slots of the node.
            pods: by the uid that kubelet runs them under.
            by_driver: the names of the slots whose memory the driver limits.
        """
        found = {uid: each for uid, each in _holdings(slots, by_driver).items() if uid in pods}
        self._tried = {uid: text for uid, text in self._tried.items() if uid in found}
        for uid, holdings in found.items():
            before = pods[uid].owned.get(names.HELD_BY, "")
            wanted = write_holdings({**read_holdings(before), **holdings})
            if wanted not in (before, self._tried.get(uid)):
                self._tried[uid] = wanted
                await self._write(pods[uid], wanted)

    async def _write(self, pod: PodFacts, written: str) -> None:
        body = msgspec.json.encode({"metadata": {"uid": pod.uid, "annotations": {names.HELD_BY: written}}})
        try:
            answer = await self.calls.patch(path_of_pod(pod.namespace, pod.name), body)
            why = "" if answer.status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND) else answer.refusal()
        except NoAnswerError as error:
            self._tried.clear()
            why = str(error)
        if why:
            self.log.warning("not recorded what holds a pod", pod=pod.title, why=why)


def _holdings(slots: Iterable[Slot], by_driver: Collection[str]) -> Mapping[str, Mapping[str, Holding]]:
    """Returns the holdings by pod and container, without containers of which it is unknown which one runs."""
    found: dict[str, dict[str, Holding]] = defaultdict(dict)
    for slot in slots:
        if slot.holding is not None and slot.only_container:
            holding = slot.holding
            found[slot.uid][slot.only_container] = with_driver(holding) if slot.name in by_driver else holding
    return found
