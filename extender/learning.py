"""Which pods are expected: learnt from those that come, and remembered on the Lease."""

from __future__ import annotations

from collections.abc import Mapping

from halfcard.placing.facts import Facts

from .mix import Kind, Mix


class Learning:
    def mix(self) -> Mix:
        return Mix(
            ((Kind(4000, 16384, 1, 50), 1.0), (Kind(8000, 32768, 1, 100), 1.0), (Kind(64000, 262144, 8, 100), 0.05))
        )

    def saw(self, facts: Facts) -> None:
        pass

    def notes(self) -> Mapping[str, str]:
        return {}

    def recall(self, notes: Mapping[str, str]) -> None:
        pass
