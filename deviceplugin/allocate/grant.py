"""Makes the grant of one slot: the containers that it may be, their cards, and their limits in the formats of all
programs that enforce them (docs/limits.md).

Invariant: a container never gets more than its pod holds. Where it may be one of several containers of its pod, it gets
the largest of their requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.cards import Card, CardLimit, Node
from halfcard.claims import WHOLE_CARD, Claim, ContainerStage
from halfcard.dialects import Dialect
from halfcard.isolation.holding import LIBRARY, Holding
from halfcard.isolation.mode import IS_OFF
from halfcard.isolation.shared_files import CardControl
from halfcard.placing.card_usage import CardMode, CardUse, mode_of
from halfcard.placing.node_usage import Share
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import name_of
from halfcard.problems import printable

from ..inject.cdi import CardEdits
from ..isolation.control import Held
from ..kubelet.messages import RefusedError
from .container_identity import StartingContainer, candidates

VERSION: Final = 1
_WHOLE_NUMBER: Final = re.compile(r"\s*\+?([0-9]{1,9})\s*", re.ASCII)
_NAMED_CHARS: Final = 80


class ContainerLimits(msgspec.Struct, frozen=True):
    """The limits of one container.

    Attributes:
        containers: several names where it is unknown which of them starts.
        held_by: what holds the container to them; None where nothing does.
        not_held: why nothing does; None for a container that is held or has no limits.
    """

    version: int
    namespace: str
    pod: str
    uid: str
    containers: tuple[str, ...]
    dialect: str
    cards: tuple[CardLimit, ...]
    held_by: str | None = None
    not_held: str | None = None


class PodOnCards(NamedTuple):
    """A pod and its cards on this node; the annotations hold what its owner wrote about limits."""

    facts: PodFacts
    annotations: Mapping[str, str]
    node: Node
    share: Share

    @property
    def uses(self) -> dict[str, CardUse]:
        """The peak use of each card, by the card's name."""
        return {name_of(self.node.cards[at]): use for at, use in self.share.uses.items()}


class Grant(NamedTuple):
    cards: tuple[Card, ...]
    limits: ContainerLimits
    variables: dict[str, str]
    files: CardEdits
    controls: Sequence[CardControl] = ()

    def held(self, by: Held) -> Grant:
        """Returns the grant of a container that the isolation library holds."""
        limits = msgspec.structs.replace(self.limits, held_by=LIBRARY)
        return self._replace(limits=limits, files=self.files._replace(edits=by.edits), controls=by.cards)

    def not_held(self, why: str) -> Grant:
        return self._replace(limits=msgspec.structs.replace(self.limits, not_held=why or None))

    @property
    def holding(self) -> Holding | None:
        """Returns what is to be recorded at the pod; None where nothing is to hold it."""
        limits = self.limits
        if limits.held_by:
            return Holding((limits.held_by,))
        return Holding(why=limits.not_held) if limits.not_held and limits.not_held != IS_OFF else None


def grant_of(
    pod: PodOnCards,
    container: StartingContainer,
    dialects: Mapping[str, Dialect],
    files: Callable[[Sequence[Card]], CardEdits],
) -> Grant:
    containers = candidates(pod.facts, container)
    cards = _cards(pod, containers)
    limits = _limits(pod, containers, cards, dialects)
    dialect = dialects[limits.dialect]
    of_dialect = dialect.variables(limits.cards, cards, _pod_mib(pod.facts, dialect.name))
    return Grant(cards, limits, as_variables(limits.cards, cards) | of_dialect, files(cards))


def _cards(pod: PodOnCards, containers: Sequence[str]) -> tuple[Card, ...]:
    """Returns the cards of these indistinguishable containers; each card once, in the order of the record."""
    where = dict(zip(pod.facts.containers, pod.share.layout, strict=True))
    found = {where[name] for name in containers if name in where}
    if not found:
        raise RefusedError(
            f"pod {pod.facts.title}: {_listed(containers)} requests no card under a resource name that this node knows"
        )
    if len({frozenset(cards) for cards in found}) > 1:
        raise RefusedError(
            f"pod {pod.facts.title}: kubelet does not tell which of {_listed(containers)} starts, and their cards "
            "differ; let the init container request another amount than the containers after it"
        )
    return tuple([pod.node.cards[at] for at in dict.fromkeys(found.pop())])


def _listed(containers: Sequence[str]) -> str:
    return printable(", ".join(containers) or "none of its containers", _NAMED_CHARS)


def _limits(
    pod: PodOnCards, containers: tuple[str, ...], cards: Sequence[Card], dialects: Mapping[str, Dialect]
) -> ContainerLimits:
    facts = pod.facts
    needs = zip(facts.containers, facts.demand.needs, strict=True)
    claims = [need.claim for name, need in needs if name in containers]
    dialect = claims[0].dialect
    burst = burst_of(pod.annotations, dialects[dialect])
    limits = card_limits(cards, claims, pod.node.slices, burst)
    return ContainerLimits(VERSION, facts.namespace, facts.name, facts.uid, containers, dialect, limits)


def _pod_mib(facts: PodFacts, dialect: str) -> int:
    """Sums the containers that run together, like gpushare."""
    needs = [need for need in facts.demand.needs if need.stage is ContainerStage.APP and need.claim.dialect == dialect]
    return sum([need.claim.memory_mib or 0 for need in needs])


# --- limits -----------------------------------------------------------------------------------------------------------


def card_limits(
    cards: Iterable[Card], claims: Sequence[Claim], slices: str, burst_pct: int | None
) -> tuple[CardLimit, ...]:
    """Returns the limits; `slices` is the resource of the node's time slices, `claims` are those of all candidates."""
    return tuple([_card_limit(card, claims, slices, burst_pct) for card in cards])


def _card_limit(card: Card, claims: Sequence[Claim], slices: str, burst_pct: int | None) -> CardLimit:
    cores = _largest(_cores(claim, slices) for claim in claims)
    burst = None if cores is None or burst_pct is None else max(cores, min(burst_pct, WHOLE_CARD))
    return CardLimit(card.index, card.uuid, cores, burst, _largest(_memory(claim, card, slices) for claim in claims))


def _largest(amounts: Iterable[int | None]) -> int | None:
    found = [-1 if amount is None else amount for amount in amounts]
    return None if min(found) < 0 else max(found)


def _cores(claim: Claim, slices: str) -> int | None:
    return claim.cores_pct if mode_of(claim, slices) is CardMode.SHARED else None


def _memory(claim: Claim, card: Card, slices: str) -> int | None:
    """Returns the memory limit; None for whole cards and time slices, which have none."""
    if mode_of(claim, slices) not in (CardMode.SHARED, CardMode.HALVES):
        return None
    if claim.memory_mib is None and claim.memory_pct is not None and card.memory_mib is not None:
        return card.memory_mib * claim.memory_pct // 100
    return claim.memory_mib


def burst_of(annotations: Mapping[str, str], dialect: Dialect) -> int | None:
    """Returns the core limit that the pod's owner wrote; None where it is no number or the system has none."""
    written = _WHOLE_NUMBER.fullmatch(annotations.get(dialect.core_limit, "")) if dialect.core_limit else None
    return int(written[1]) if written else None


def as_file(limits: ContainerLimits) -> bytes:
    return msgspec.json.format(msgspec.json.encode(limits), indent=2) + b"\n"


def as_variables(limits: Sequence[CardLimit], cards: Sequence[Card]) -> dict[str, str]:
    """Returns the variables that do not depend on the dialect of the request."""
    return {
        names.VISIBLE_DEVICES: ",".join(card.uuid or str(card.index) for card in cards),
        names.LIMITS_VARIABLE: names.LIMITS_FILE,
        names.LIMIT_CORES_VARIABLE: _joined(each.cores_pct for each in limits),
        names.LIMIT_BURST_VARIABLE: _joined(each.cores_limit_pct for each in limits),
        names.LIMIT_MEMORY_VARIABLE: _joined(each.memory_mib for each in limits),
        **_for_hami(limits),
    }


def _joined(amounts: Iterable[int | None]) -> str:
    return ",".join("" if amount is None else str(amount) for amount in amounts)


def _for_hami(limits: Sequence[CardLimit]) -> dict[str, str]:
    """Returns the variables of HAMi's library, which identifies cards by position and has one core share for all."""
    found = {
        f"{names.CUDA_MEMORY_VARIABLE}{place}": f"{each.memory_mib}m"
        for place, each in enumerate(limits)
        if each.memory_mib is not None
    }
    first = limits[0]
    if first.cores_pct is not None:
        found[names.CUDA_CORES_VARIABLE] = str(first.cores_limit_pct or first.cores_pct)
    return found
