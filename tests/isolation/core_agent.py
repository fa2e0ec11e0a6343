"""The node agent's part in the cores of containers on the stand-in driver's cards, by its own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deviceplugin.isolation.share_files import ShareFiles
from deviceplugin.usage.core_meter import CardOfSlot, CoreMeter, MeteredCard
from halfcard.isolation.shared_files import cores_of_control, measured_at_of_control

OF_1000 = 10
"""NVML shows whole per cents."""


class CoreAgent:
    """Measures containers, whose folders lie in one, and writes what the libraries of theirs cannot know."""

    def __init__(self, folder: Path) -> None:
        self._files = ShareFiles(folder)
        self._meter = CoreMeter()

    def measure(self, used: Mapping[str, Sequence[int]], now_ns: int) -> None:
        """Does what the agent does each second.

        Args:
            used: by container, the per cents of each card that its processes used.
            now_ns: the time of the stand-in.
        """
        held = [card for name in used for card in self._metered(name, used[name])]
        of_cards: dict[bytes, int] = {}
        for each in held:
            of_cards[each.control.uuid] = of_cards.get(each.control.uuid, 0) + each.cores_pct
        for (name, at), words in self._meter.words(held, of_cards, now_ns).items():
            change = cores_of_control(at, spare=words.spare, correction=words.correction)
            self._files.change(name, change, measured_at_of_control(now_ns))

    def _metered(self, name: str, used: Sequence[int]) -> Iterator[MeteredCard]:
        controls = self._files.controls(name)
        account = self._files.account(name, len(controls))
        for at, control in enumerate(controls):
            yield MeteredCard(CardOfSlot(name, at), control, account[at], used[at])
