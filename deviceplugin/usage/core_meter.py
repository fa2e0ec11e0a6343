"""Finds for each held container how its claims of GPU time are to be corrected, and whether it has spare cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from halfcard.isolation.core_correction import UNCORRECTED, CoreTimes, growth
from halfcard.isolation.shared_files import NO_LIMIT, AccountCard, CardControl
from halfcard.isolation.spare_cores import CoreUse, with_spare

_PCT: Final = 10
"""In 1/1000."""
_WHOLE_PCT: Final = 100


class CardOfSlot(NamedTuple):
    """One card of a held container, by the name of its slot and the card's place in the account."""

    slot: str
    at: int


class MeteredCard(NamedTuple):
    """What is known of one card of a held container now.

    Attributes:
        control: its limits.
        account: what its processes claim.
        cores_pct: what the driver measured of these processes.
    """

    key: CardOfSlot
    control: CardControl
    account: AccountCard
    cores_pct: int


class CoreWords(NamedTuple):
    """The words of a container's control file about a card."""

    spare: bool = False
    correction: int = UNCORRECTED


class CoreMeter:
    """Remembers what accounts said at the last measurement."""

    def __init__(self) -> None:
        self._accounts: Mapping[CardOfSlot, AccountCard] = {}
        self._times: Mapping[CardOfSlot, CoreTimes] = {}
        self._measured_ns = 0
        self._turn = 0

    def words(
        self, held: Iterable[MeteredCard], all_pct: Mapping[bytes, int], now_ns: int
    ) -> Mapping[CardOfSlot, CoreWords]:
        """Returns what to write; cards of containers without processes have no words.

        Args:
            held: the cards of all held containers.
            all_pct: by card, the sum of what the driver measured of all processes.
            now_ns: the time of the measurement.
        """
        cards: dict[bytes, list[MeteredCard]] = defaultdict(list)
        for each in held:
            if each.account.rows:
                cards[each.control.uuid].append(each)
        passed_ns, self._measured_ns = now_ns - self._measured_ns, now_ns
        self._turn += 1
        before, self._times = self._times, {}
        found = [self._of_card(card, all_pct.get(uuid, 0), before, passed_ns) for uuid, card in cards.items()]
        self._accounts = {each.key: each.account for card in cards.values() for each in card}
        return {key: words for each in found for key, words in each.items()}

    def _of_card(
        self, held: list[MeteredCard], all_pct: int, before: Mapping[CardOfSlot, CoreTimes], passed_ns: int
    ) -> Mapping[CardOfSlot, CoreWords]:
        """Scales what was measured: processes that take turns may each be measured as if they had the card alone."""
        scale = min(1.0, _WHOLE_PCT / all_pct) if all_pct else 1.0
        uses = []
        for each in held:
            earlier = self._accounts.get(each.key)
            grown = growth(earlier or each.account, each.account)
            shown_ns = each.cores_pct * scale / _WHOLE_PCT * passed_ns if earlier else 0.0
            self._times = {**self._times, each.key: before.get(each.key, CoreTimes()).after(shown_ns, grown.gpu)}
            uses.append(_use(each, scale, waits=grown.throttled > 0))
        others = max(0, round(all_pct * scale * _PCT) - sum(use.used for use in uses))
        spare = with_spare(uses, others, self._turn)
        return {each.key: CoreWords(at in spare, self._times[each.key].correction) for at, each in enumerate(held)}


def _use(held: MeteredCard, scale: float, *, waits: bool) -> CoreUse:
    used = round(held.cores_pct * scale * _PCT)
    return CoreUse(_limit(held.control.share), _limit(held.control.ceiling), used, waits)


def _limit(written: int) -> int | None:
    return None if written == NO_LIMIT else written
