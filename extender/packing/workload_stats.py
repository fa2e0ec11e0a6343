"""Learns the expected pods from those that come, and keeps them on the Lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from halfcard import names
from halfcard.placing.pod_facts import PodFacts

from .workload_mix import USUAL, PodClass, WorkloadMix, pod_class_of
from .workload_mix_text import read_mix, write_mix

_HALF_LIFE: Final = 2000
"""The number of pods after which a pod counts half."""

_GROWTH: Final = 2.0 ** (1 / _HALF_LIFE)
_MOST_KINDS: Final = 200
_USUAL_PODS: Final = 50
"""The weight of the usual mix, in pods; it is forgotten like them."""


class WorkloadStats:
    """Counts pods by kind. The newest counts ever more, which is as if all others counted ever less."""

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
        if len(self._counts) > 2 * _MOST_KINDS or self._newest > 2.0**20:
            self._rescale()

    def mix(self) -> WorkloadMix:
        """Counts are those of pods that have just come."""
        frequent = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return WorkloadMix(tuple([(kind, count / self._newest) for kind, count in frequent[:_MOST_KINDS]]))

    def _rescale(self) -> None:
        self._counts = dict(self.mix().kinds)
        self._newest = 1.0

    # --- on the Lease -------------------------------------------------------------------------------------------------

    def notes(self) -> Mapping[str, str]:
        return {names.LEARNT_MIX: write_mix(self.mix())}

    def load(self, notes: Mapping[str, str]) -> None:
        """The leader saw each pod once; what we counted from a list of all that run is no better."""
        mix = read_mix(notes.get(names.LEARNT_MIX, ""))
        if mix is not None:
            self._counts, self._newest = dict(mix.kinds), 1.0
