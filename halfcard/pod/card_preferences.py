"""Reads a pod owner's preferences from annotations: the model, the card, and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .. import names
from ..cards import Card
from ..problems import printable

POLICIES: Final = ("default", "binpack", "spread", "fgd")
"""The table of policies; each is a module of `extender/packing/policies`."""


@dataclass(frozen=True, slots=True)
class CardPreferences:
    """What the owner of a pod wants; empty where no annotation exists.

    Attributes:
        policy: one of POLICIES.
        models: the model of a card must contain one of these texts, in any case.
        not_models: the model of a card must contain none of these texts.
        uuids: the cards that may be chosen.
        not_uuids: the cards that may not be chosen.
        text: all annotations as they are written, on one line, for messages.
        closed: models of which a budget has nothing left, whatever the owner wants.
    """

    policy: str = ""
    models: tuple[str, ...] = ()
    not_models: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    text: str = field(default="", compare=False)
    closed: tuple[str, ...] = ()

    @property
    def narrows(self) -> bool:
        """Returns whether some cards may not be chosen."""
        return bool(self.models or self.not_models or self.uuids or self.not_uuids or self.closed)

    def allows(self, card: Card) -> bool:
        if not self.allows_model(card.model) or (self.uuids and card.uuid not in self.uuids):
            return False
        return card.uuid not in self.not_uuids

    def allows_model(self, name: str) -> bool:
        model = name.lower()
        if self.models and not any(part in model for part in self.models):
            return False
        return name not in self.closed and not any(part in model for part in self.not_models)


NOTHING_WANTED: Final = CardPreferences()

_LISTS: Final = (
    ("models", (names.ASK_MODEL, names.HAMI_USE_MODEL)),
    ("not_models", (names.HAMI_AVOID_MODEL,)),
    ("uuids", (names.ASK_UUID, names.HAMI_USE_UUID)),
    ("not_uuids", (names.HAMI_AVOID_UUID,)),
)
_SPOKEN: Final = frozenset({names.ASK_POLICY, *(name for _, spoken in _LISTS for name in spoken)})
_MOST_WORDS: Final = 64
_TEXT_CHARS: Final = 80


def read_preferences(annotations: Mapping[str, str]) -> CardPreferences:
    """Reads the annotations; an unknown policy is ignored, since admission refuses it."""
    if _SPOKEN.isdisjoint(annotations):
        return NOTHING_WANTED
    policy = annotations.get(names.ASK_POLICY, "")
    lists = {field_name: _words(annotations, spoken) for field_name, spoken in _LISTS}
    return CardPreferences(
        policy if policy in POLICIES else "",
        _folded(lists["models"]),
        _folded(lists["not_models"]),
        lists["uuids"],
        lists["not_uuids"],
        printable(
            ", ".join(f"{name}={annotations[name]}" for name in sorted(_SPOKEN & annotations.keys())), _TEXT_CHARS
        ),
    )


def _words(annotations: Mapping[str, str], spoken: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the words of these annotations, sorted, so that equal preferences compare equal."""
    written = (word.strip() for name in spoken for word in annotations.get(name, "").split(","))
    return tuple(sorted({word for word in written if word})[:_MOST_WORDS])


def _folded(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({word.lower() for word in words}))
