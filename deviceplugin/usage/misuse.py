"""Finds pods that use of the node's cards what they were not granted: more memory of a card, or another card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from halfcard import names
from halfcard.placing.pod_facts import PodFacts

from .usage_report import CardUsage, ContainerUsage, NodeUsageReport, PartUsage, UnaccountedProcess

EXCEEDED: Final = "CardMemoryExceeded"
NOT_GRANTED: Final = "CardNotGranted"


class Misuse(NamedTuple):
    """What a pod uses without a grant.

    Attributes:
        container: empty where the container was granted nothing of the card.
        reason: that of its Event.
    """

    namespace: str
    pod: str
    uid: str
    container: str
    card: int
    used_mib: int
    reason: str
    sentence: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.uid, self.container, self.card

    @property
    def title(self) -> str:
        return "/".join(filter(None, (self.namespace, self.pod, self.container)))


def misuses(
    report: NodeUsageReport, pods: Mapping[str, PodFacts], exempt: frozenset[str]
) -> Mapping[tuple[str, str, int], Misuse]:
    """Finds misuse, by pod, container and card.

    Args:
        report: what is used now.
        pods: all pods of the node, by uid.
        exempt: the namespaces whose pods may use cards without a grant, such as those of the driver's own programs.
    """
    strangers = (each for card in report.cards for each in _strangers(card, pods))
    found = (*_excesses(report), *(each for each in strangers if each.namespace not in exempt))
    return {each.key: each for each in found}


def _excesses(report: NodeUsageReport) -> Iterator[Misuse]:
    for container in report.containers:
        for part in container.cards:
            if part.excess_mib:
                yield _excess(container, part)


def _excess(container: ContainerUsage, part: PartUsage) -> Misuse:
    sentence = (
        f"container {container.container} uses {part.used_mib} MiB of card {part.card}, and was granted"
        f" {part.memory_mib} MiB: its neighbours on the card may get too little; let it use less, or request more"
    )
    who = (container.namespace, container.pod, container.uid, container.container)
    return Misuse(*who, part.card, part.used_mib, EXCEEDED, sentence)


def _strangers(card: CardUsage, pods: Mapping[str, PodFacts]) -> Iterator[Misuse]:
    processes: dict[str, list[UnaccountedProcess]] = defaultdict(list)
    for process in card.strangers:
        processes[process.uid].append(process)
    for uid, found in processes.items():
        if (facts := pods.get(uid)) is not None:
            yield _stranger(facts, card, found)


def _stranger(facts: PodFacts, card: CardUsage, processes: list[UnaccountedProcess]) -> Misuse:
    used = sum(process.memory_mib for process in processes)
    first = min(process.pid for process in processes)
    more = f" and {len(processes) - 1} more" if len(processes) > 1 else ""
    sentence = (
        f"process {first}{more} of the pod uses {used} MiB of card {card.index}, and its container was granted nothing"
        f" of it: remove what brings it there, such as {names.VISIBLE_DEVICES} in its image, or request a card"
    )
    return Misuse(facts.namespace, facts.name, facts.uid, "", card.index, used, NOT_GRANTED, sentence)
