"""Peer records: annotations in which other systems' schedulers name the cards of a pod, and which their agents read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..cards import Card, Node
from ..claims import ContainerStage, Need
from ..problems import MOST_ANNOTATED

Named = tuple[tuple[str, ...], ...]
"""The cards of each need, by uuid or index. A record counts only if each need has as many cards as its claim."""

NOT_UNDERSTOOD: Final[Named] = ()
"""A record exists, and it does not name the cards."""


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on its cards.

    Attributes:
        containers: the names of the containers with claims, in the order of `needs`.
        layout: the positions of the cards of each need.
    """

    node: Node
    containers: tuple[str, ...]
    needs: tuple[Need, ...]
    layout: tuple[tuple[int, ...], ...]

    def cards(self, number: int) -> list[Card]:
        return [self.node.cards[at] for at in self.layout[number]]

    def apps(self, dialect: str) -> list[int]:
        """Returns the positions of the needs that the agent of a system knows: it reads app containers only."""
        wanted = [number for number, need in enumerate(self.needs) if need.stage is ContainerStage.APP]
        return [number for number in wanted if self.needs[number].claim.dialect == dialect]


Reader = Callable[[Mapping[str, str], str, Sequence[Need]], Named | None]
"""Reads the annotations of a pod that is bound to this node; None where its system wrote nothing."""


class PeerRecord(NamedTuple):
    """How a system records the cards of a pod.

    Attributes:
        system: its name for people.
        write: makes the annotations from a pod, the positions of the needs that the system knows, and the time in ns.
        time: how the key of the annotation that holds this time ends; None where the system writes no time.
        chosen: reads the cards that its agent has chosen itself; they count before every record.
    """

    system: str
    read: Reader
    write: Callable[[PlacedPod, list[int], int], dict[str, str]]
    time: str | None
    chosen: Reader | None = None


def one_list(key: str, dialect: str) -> Reader:
    """Returns a reader of one list of cards that all containers of a dialect share: each gets the whole list."""

    def read(annotations: Mapping[str, str], _node: str, needs: Sequence[Need]) -> Named | None:
        text = annotations.get(key)
        if text is None:
            return None
        return tuple([split(text) if need.claim.dialect == dialect else () for need in needs])

    return read


def split(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text and len(text) <= MOST_ANNOTATED else ()


def indices(cards: Iterable[Card]) -> str:
    return ",".join(str(card.index) for card in cards)
