"""Writes and reads a node's cards in the annotation `halfcard.dev/inventory`.

Invariant: a node writes it about itself. An impossible value is refused with a sentence, like capacity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from . import names
from .capacity import MAX_CARD_MIB, MAX_CARDS, MOST_REPLICAS, ImplausibleError, implausible
from .cards import Card
from .problems import MOST_ANNOTATED, printable

WHERE: Final = f'metadata.annotations["{names.INVENTORY}"]'
_MOST_LINKED: Final = 2**31
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,127}", re.ASCII)
_MODEL_CHARS: Final = 100
_REASON_CHARS: Final = 200
_SOLD_AS: Final = (names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED)


class Inventory(NamedTuple):
    """The cards of a node, and the resource name of their time slices; empty for none."""

    cards: tuple[Card, ...]
    slices: str = ""


class _Card(msgspec.Struct, omit_defaults=True):
    index: int
    uuid: str = ""
    model: str = ""
    memory_mib: int | None = None
    numa: int | None = None
    links: dict[int, int] = {}
    replicas: int = 1
    sold_as: str = names.NVIDIA_GPU
    unhealthy: str = ""
    not_held: str = ""


_CARDS: Final = msgspec.json.Decoder(list[_Card])


def write_inventory(cards: Iterable[Card], slices: str = "") -> str:
    return msgspec.json.encode([_written(card, slices) for card in cards]).decode()


def _written(card: Card, slices: str) -> _Card:
    return _Card(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory_mib=card.memory_mib,
        numa=card.numa,
        links=dict(card.links),
        replicas=card.replicas,
        sold_as=slices if slices and card.replicas > 1 else names.NVIDIA_GPU,
        unhealthy=card.why_not,
        not_held=card.not_held,
    )


def read_inventory(text: str) -> Inventory:
    """Parses the annotation.

    Raises:
        ImplausibleError: the text is no inventory, or holds an impossible value.
    """
    if len(text) > MOST_ANNOTATED:
        raise _refused(text, f"it has at most {MOST_ANNOTATED} characters")
    try:
        found = _CARDS.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise _refused(text, f"it is a JSON list of cards: {error}") from None
    if len(found) > MAX_CARDS:
        raise _refused(len(found), f"a node has at most {MAX_CARDS} cards")
    cards = tuple([_read(card) for card in found])
    uuids = [card.uuid for card in cards if card.uuid]
    if len({card.index for card in cards}) < len(cards) or len(set(uuids)) < len(uuids):
        raise _refused(text, "every card has an index and a uuid of its own")
    return Inventory(cards, _slices(found))


def _slices(found: list[_Card]) -> str:
    """Returns the resource name of time slices; cards without replicas have none, whatever their entry says."""
    sold_as = {card.sold_as for card in found if card.replicas > 1}
    if len(sold_as) > 1 or not sold_as <= {*_SOLD_AS}:
        raise _refused(", ".join(sorted(sold_as)), f"time slices of a node are sold as one of {', '.join(_SOLD_AS)}")
    return sold_as.pop() if sold_as else ""


def _read(card: _Card) -> Card:
    for what, number, least, most in (
        ("the index of a card", card.index, 0, MAX_CARDS - 1),
        ("memory of a card in MiB", card.memory_mib, 1, MAX_CARD_MIB),
        ("the NUMA node of a card", card.numa, -1, MAX_CARDS),
        ("the number of time slices of a card", card.replicas, 1, MOST_REPLICAS),
        *(("the index of a linked card", index, 0, MAX_CARDS - 1) for index in card.links),
        *(("the strength of a link", strength, 0, _MOST_LINKED) for strength in card.links.values()),
    ):
        if number is not None and not least <= number <= most:
            raise _refused(number, f"{what} is from {least} to {most}")
    if card.uuid and not _NAME.fullmatch(card.uuid):
        raise _refused(card.uuid, "a uuid begins with a letter, so that it is no index, and has no spaces")
    return Card(
        card.index,
        printable(card.model, _MODEL_CHARS),
        card.memory_mib,
        card.uuid,
        card.numa,
        tuple(sorted(card.links.items())),
        card.replicas,
        printable(card.unhealthy, _REASON_CHARS),
        printable(card.not_held, _REASON_CHARS),
    )


def _refused(got: object, rule: str) -> ImplausibleError:
    return implausible(WHERE, got, rule)
