"""Learns the expected pods from new pods, and stores them on the Lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from halfcard import names
from halfcard.placing.pod_facts import PodFacts

from .workload_mix import USUAL, PodClass, WorkloadMix, pod_class_of
from .workload_mix_text import read_mix, write_mix

_HALF_LIFE: Final = 2000
"""The number of newer pods after which a pod counts half."""

_GROWTH: Final = 2.0 ** (1 / _HALF_LIFE)
_MAX_CLASSES: Final = 200
_USUAL_PODS: Final = 50
"""The weight of the usual mix, in pods; it decays like theirs."""


class WorkloadStats:
    """Counts pods by class. Each new pod weighs more than the one before, so that older pods decay."""

    def __init__(self) -> None:
        usual = sum(count for _, count in USUAL.kinds)
        self._counts = {kind: _USUAL_PODS * count / usual for kind, count in USUAL.kinds}
        self._newest = 1.0

    def observe(self, facts: PodFacts) -> None:
        if facts.demand.needs:
            self.count(pod_class_of(facts.demand))

    def count(self, kind: PodClass) -> None:
        self._newest *= _GROWTH
        self._counts[kind] = self._counts.get(kind, 0.0) + self._newest
        if len(self._counts) > 2 * _MAX_CLASSES or self._newest > 2.0**20:
            self._rescale()

    def mix(self) -> WorkloadMix:
        """Returns the most frequent classes, in units of the newest pod."""
        frequent = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return WorkloadMix(tuple([(kind, count / self._newest) for kind, count in frequent[:_MAX_CLASSES]]))

    def _rescale(self) -> None:
        self._counts = dict(self.mix().kinds)
        self._newest = 1.0

    # --- on the Lease -------------------------------------------------------------------------------------------------

    def notes(self) -> Mapping[str, str]:
        return {names.LEARNT_MIX: write_mix(self.mix())}

    def load(self, notes: Mapping[str, str]) -> None:
        """Loads the counts of the leader, which saw each pod once; this replica has counted from a list of pods."""
        mix = read_mix(notes.get(names.LEARNT_MIX, ""))
        if mix is not None:
            self._counts, self._newest = dict(mix.kinds), 1.0
